#include "report/kernel_codec.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "margrave/error.hpp"

namespace margrave {

namespace {

constexpr std::uint32_t most_degree = 16;

bool all_finite(const auto& values) {
  return std::all_of(values.begin(), values.end(), [](auto v) { return std::isfinite(v); });
}

// What is wrong with a group, or nullptr.
const char* wrong(const KernelExpansion::Group& group, const TemplateSet& templates) {
  const KernelFunction& f = group.function;
  if (!(f.width >= 0) || !std::isfinite(f.width) || !std::isfinite(f.offset) || f.offset < 0 ||
      f.degree > most_degree)
    return "has a kernel whose parameters cannot be";
  std::uint64_t rows = 0;
  for (std::size_t n = 0; n < group.templates.size(); ++n) {
    const std::uint32_t t = group.templates[n];
    if (t >= templates.size() || (n > 0 && t <= group.templates[n - 1]))
      return "has a kernel for templates that are not there";
    if (templates[t].order() != 1 || templates[t].inputs != group.inputs)
      return "has a kernel for templates that do not fit it";
    rows += templates[t].rows;
  }
  if (group.templates.empty() || group.begin.empty() || group.begin.front() != 0 ||
      !std::is_sorted(group.begin.begin(), group.begin.end()) || group.begin.back() != group.index.size() ||
      group.value.size() != group.index.size())
    return "has support inputs that do not fit together";
  for (std::size_t s = 0; s < group.support(); ++s)
    for (std::uint64_t n = group.begin[s]; n < group.begin[s + 1]; ++n)
      if (group.index[n] >= group.inputs || (n > group.begin[s] && group.index[n] <= group.index[n - 1]))
        return "has a support input out of order";
  if (group.coefficient.size() != group.support() * rows)
    return "has coefficients that do not fit its support";
  if (!all_finite(group.value) || !all_finite(group.coefficient))
    return "has a coefficient or an input that is not a finite number";
  return nullptr;
}

const char* wrong(const KernelExpansion& kernel, const TemplateSet& templates,
                  std::span<const double> weights) {
  std::vector<bool> seen(templates.size(), false);
  for (const KernelExpansion::Group& group : kernel.groups) {
    if (const char* why = wrong(group, templates)) return why;
    for (const std::uint32_t t : group.templates) {
      if (seen[t]) return "has two kernels for one template";
      seen[t] = true;
      const auto own = weights.subspan(templates[t].offset, templates[t].stride * templates[t].inputs);
      if (std::any_of(own.begin(), own.end(), [](double w) { return w != 0; }))
        return "has weights beside the kernel of a template";
    }
  }
  return nullptr;
}

}  // namespace

void put_kernel(ByteWriter& out, const KernelExpansion& kernel, const TemplateSet& templates,
                std::span<const double> weights) {
  if (const char* why = wrong(kernel, templates, weights)) throw UsageError(std::string("a model ") + why);
  out.put<std::uint64_t>(kernel.groups.size());
  for (const KernelExpansion::Group& group : kernel.groups) {
    out.put(group.function.kind);
    out.put(group.function.width);
    out.put(group.function.offset);
    out.put(group.function.degree);
    out.put(group.inputs);
    out.put_array(std::span<const std::uint32_t>(group.templates));
    out.put_array(std::span<const std::uint64_t>(group.begin));
    out.put_array(std::span<const std::uint32_t>(group.index));
    out.put_array(std::span<const float>(group.value));
    out.put_array(std::span<const double>(group.coefficient));
  }
}

KernelExpansion get_kernel(ByteReader& in, const TemplateSet& templates, std::span<const double> weights) {
  KernelExpansion kernel;
  const auto groups = in.get<std::uint64_t>();
  if (groups > templates.size()) in.fail("has more kernels than templates");
  for (std::uint64_t g = 0; g < groups; ++g) {
    KernelExpansion::Group& group = kernel.groups.emplace_back();
    const auto kind = in.get<std::uint8_t>();
    if (kind > static_cast<std::uint8_t>(Kernel::rbf)) in.fail("has an unknown kernel");
    group.function.kind = static_cast<Kernel>(kind);
    group.function.width = in.get<double>();
    group.function.offset = in.get<double>();
    group.function.degree = in.get<std::uint32_t>();
    group.inputs = in.get<std::uint64_t>();
    group.templates = in.get_array<std::uint32_t>();
    group.begin = in.get_array<std::uint64_t>();
    group.index = in.get_array<std::uint32_t>();
    group.value = in.get_array<float>();
    group.coefficient = in.get_array<double>();
  }
  if (in.left() != 0) in.fail("has kernels of unknown length");
  if (const char* why = wrong(kernel, templates, weights)) in.fail(why);
  return kernel;
}

}  // namespace margrave
