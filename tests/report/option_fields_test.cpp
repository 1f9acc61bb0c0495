#include "report/option_fields.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "margrave/error.hpp"

namespace margrave {
namespace {

using Settings = std::vector<std::pair<std::string, std::string>>;

TEST(OptionFields, SetEveryFieldOfASolverFromText) {
  const Settings settings = {
      {"steps", "away"}, {"representation", "labellings"}, {"inner-steps", "7"}, {"cached-passes", "0"},
      {"batch", "64"},   {"gap-sampling", "off"},          {"averaging", "true"}};
  const auto options = std::get<BcfwOptions>(make_solver("bcfw", settings));
  EXPECT_EQ(options.steps, Steps::away);
  EXPECT_EQ(options.inner_steps, 7U);
  EXPECT_EQ(options.cached_passes, 0U);
  EXPECT_EQ(options.batch, 64U);
  EXPECT_FALSE(options.gap_sampling);
  EXPECT_TRUE(options.averaging);
}

TEST(OptionFields, RefuseWhatDoesNotFit) {
  for (const auto& [name, text] : Settings{{"batch", "0"},
                                           {"batch", "1e3"},
                                           {"batch", ""},
                                           {"batch", "-1"},
                                           {"batch", "99999999999999999999"},
                                           {"steps", "sideways"},
                                           {"averaging", "perhaps"},
                                           {"no-such-field", "1"}})
    EXPECT_THROW(make_solver("bcfw", Settings{{name, text}}), UsageError) << name << "=" << text;
  EXPECT_THROW(make_solver("magic"), UsageError);
  EXPECT_THROW(make_solver("auto", Settings{{"batch", "3"}}), UsageError);
}

TEST(OptionFields, ListEachNameOnceWithItsSolvers) {
  std::vector<std::string> names;
  for (const FieldInfo& info : solver_fields()) {
    EXPECT_FALSE(info.help.empty());
    EXPECT_FALSE(info.default_value.empty());
    EXPECT_FALSE(info.solvers.empty());
    if (info.name == "multiplier-every") {
      EXPECT_EQ(info.default_value, "0");
      EXPECT_NE(info.help.find("[idal, gdmm: 1]"), std::string::npos) << info.help;
    }
    EXPECT_EQ(std::count(names.begin(), names.end(), info.name), 0);
    names.push_back(info.name);
  }
  EXPECT_NE(std::find(names.begin(), names.end(), "steps"), names.end());
  EXPECT_TRUE(solver_choices().starts_with("auto|bcfw"));
}

TEST(OptionFields, ValidateRefusesNumbersThatCannotBeMeant) {
  const double nan = std::numeric_limits<double>::quiet_NaN(),
               infinity = std::numeric_limits<double>::infinity();
  const auto refused = [](auto change) {
    TrainOptions options;
    change(options);
    EXPECT_THROW(validate(options), UsageError);
  };
  EXPECT_NO_THROW(validate(TrainOptions{}));
  for (const double bad : {0.0, -1.0, nan, infinity}) {
    refused([&](TrainOptions& o) { o.lambda = bad; });
    refused([&](TrainOptions& o) { o.C = bad; });
  }
  for (const double bad : {-1.0, nan, infinity}) {
    refused([&](TrainOptions& o) { o.gap = bad; });
    refused([&](TrainOptions& o) { o.gamma = bad; });
  }
  for (const double bad : {0.0, -1.0, nan}) refused([&](TrainOptions& o) { o.max_seconds = bad; });
  refused([](TrainOptions& o) { o.lambda = o.C = 1; });
  refused([](TrainOptions& o) { o.evaluate_every = 0; });
  refused([](TrainOptions& o) { o.threads = -1; });
  refused([](TrainOptions& o) { o.resume = o.warm_start = "file"; });
  refused([](TrainOptions& o) {
    BcfwOptions solver;
    solver.batch = 0;
    o.solver = solver;
  });
}

TEST(OptionFields, JsonHoldsTheSolverFieldsAndNeitherThreadsNorFiles) {
  TrainOptions options;
  options.lambda = 0.1;
  options.threads = 3;
  options.checkpoint = "here";
  BcfwOptions solver;
  solver.steps = Steps::plain;
  options.solver = solver;
  const auto json = nlohmann::json::parse(to_json(options));
  EXPECT_EQ(json["lambda"], 0.1);
  EXPECT_TRUE(json["C"].is_null());
  EXPECT_TRUE(json["max_seconds"].is_null());
  EXPECT_EQ(json["solver"], "bcfw");
  EXPECT_EQ(json["solver_options"]["steps"], "plain");
  EXPECT_EQ(json["solver_options"]["gap-sampling"], true);
  EXPECT_EQ(to_json(options).find("here"), std::string::npos);
  EXPECT_FALSE(json.contains("threads"));
}

}  // namespace
}  // namespace margrave
