// Everything a user needs.
#pragma once

#include "margrave/dataset.hpp"
#include "margrave/error.hpp"
#include "margrave/generate.hpp"
#include "margrave/inspect.hpp"
#include "margrave/io.hpp"
#include "margrave/model.hpp"
#include "margrave/options.hpp"
#include "margrave/path.hpp"
#include "margrave/predict.hpp"
#include "margrave/report.hpp"
#include "margrave/scale.hpp"
#include "margrave/template.hpp"
#include "margrave/train.hpp"
#include "margrave/version.hpp"
