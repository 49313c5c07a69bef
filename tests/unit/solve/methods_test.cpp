// The list of methods, and what must follow from it: names, vectors, costs, and the texts in which people
// read of them.
#include "solve/methods/methods.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>

#include "hostless/base/error.hpp"
#include "solve/methods/method_vectors.hpp"

namespace hostless::test {
namespace {

std::string content(std::string const& path) {
  std::ifstream in(std::string(HOSTLESS_SOURCE) + "/" + path);
  EXPECT_TRUE(in) << path;
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(Methods, AreKnownByTheirNames) {
  ASSERT_EQ(methods().size(), 6u);
  std::set<std::string> names;
  for (Method method : methods()) {
    EXPECT_EQ(method_from(name(method)), method);
    names.insert(name(method));
  }
  EXPECT_EQ(names.size(), methods().size());
  EXPECT_STREQ(name(Method::cg), "cg");
  EXPECT_STREQ(name(Method::single_reduction_cg), "single-reduction-cg");
  EXPECT_STREQ(name(Method::pipelined_cg), "pipelined-cg");
  EXPECT_STREQ(name(Method::bicgstab), "bicgstab");
  EXPECT_STREQ(name(Method::minres), "minres");
  EXPECT_STREQ(name(Method::cr), "cr");
  EXPECT_EQ(method_names(), "cg, single-reduction-cg, pipelined-cg, bicgstab, minres or cr");
  EXPECT_EQ(method_names(", "), "cg, single-reduction-cg, pipelined-cg, bicgstab, minres, cr");
  EXPECT_EQ(names_of_methods([](MethodFacts const& one) { return one.offers.spans_ranks; }, " and "),
            "cg and pipelined-cg");
  EXPECT_THROW(facts_of(static_cast<Method>(methods().size())), std::logic_error);
  try {
    method_from("pipelined");
    FAIL() << "accepted";
  } catch (Error const& error) {
    EXPECT_EQ(error.code(), ErrorCode::usage);
    EXPECT_STREQ(error.what(),
                 "unknown method 'pipelined'. Did you mean 'pipelined-cg'? Use cg, "
                 "single-reduction-cg, pipelined-cg, bicgstab, minres or cr.");
  }
}

SolveOptions options_of(Method method, PreconditionerKind kind = PreconditionerKind::none) {
  SolveOptions options;
  options.method = method;
  options.preconditioner = kind;
  return options;
}

// Counted from the texts by hand.
TEST(Methods, HaveTheVectorsOfTheirTexts) {
  EXPECT_EQ(fields_of(options_of(Method::cg)), 3);
  EXPECT_EQ(fields_of(options_of(Method::cg, PreconditionerKind::chebyshev)), 4);
  EXPECT_EQ(fields_of(options_of(Method::single_reduction_cg)), 5);
  EXPECT_EQ(fields_of(options_of(Method::pipelined_cg)), 7);
  EXPECT_EQ(fields_of(options_of(Method::bicgstab)), 6);
  EXPECT_EQ(fields_of(options_of(Method::minres)), 6);
  EXPECT_EQ(fields_of(options_of(Method::cr)), 5);
  EXPECT_EQ(vectors_of(options_of(Method::cg)), 5);
}

TEST(Methods, CostWhatTheirTextsSay) {
  auto const bytes = [](Method method, PreconditionerKind kind, int block = 1) {
    return traffic_of(options_of(method, kind), block).vector_bytes;
  };
  EXPECT_EQ(bytes(Method::cg, PreconditionerKind::none), 88);
  EXPECT_EQ(bytes(Method::cg, PreconditionerKind::jacobi), 88 + 16);
  EXPECT_EQ(bytes(Method::cg, PreconditionerKind::block_jacobi, 3), 88 + 2 * 24);
  EXPECT_EQ(bytes(Method::single_reduction_cg, PreconditionerKind::jacobi), 112 + 8);
  EXPECT_EQ(bytes(Method::pipelined_cg, PreconditionerKind::jacobi), 128 + 8);
  EXPECT_EQ(bytes(Method::bicgstab, PreconditionerKind::jacobi), 200 + 16);
  EXPECT_EQ(bytes(Method::minres, PreconditionerKind::jacobi), 160 + 16);
  EXPECT_EQ(bytes(Method::cr, PreconditionerKind::jacobi), 128 + 16);
  SolveOptions polynomial = options_of(Method::cg, PreconditionerKind::chebyshev);
  polynomial.chebyshev.degree = 4;
  polynomial.chebyshev.inner = PreconditionerKind::jacobi;
  IterationTraffic const traffic = traffic_of(polynomial, 1);
  EXPECT_EQ(traffic.vector_bytes, 24 + 8 + 4 * (32 + 8) + 3 * 24 + 40 + 16 + 48);
  EXPECT_EQ(traffic.products, 5);
  EXPECT_EQ(traffic.exchanges, 5);
  EXPECT_EQ(traffic.sums, 2);
  EXPECT_EQ(traffic_of(options_of(Method::cg), 1).sums, 2);
  EXPECT_EQ(traffic_of(options_of(Method::pipelined_cg), 1).sums, 1);
  EXPECT_EQ(traffic_of(options_of(Method::bicgstab), 1).sums, 3);
  EXPECT_EQ(traffic_of(options_of(Method::bicgstab), 1).products, 2);
  EXPECT_EQ(traffic_of(options_of(Method::minres), 1).sums, 2);
  EXPECT_EQ(traffic_of(options_of(Method::cr), 1).sums, 2);
}

// docs/howto/solve-a-matrix.md has this table.
TEST(Methods, StandInTheTableOfTheDocumentation) {
  std::string const page = content("docs/howto/solve-a-matrix.md");
  std::string rows;
  for (MethodFacts const& one : method_table()) {
    IterationTraffic const traffic = one.traffic(Variant::plain, {});
    auto const vectors = std::count_if(one.fields.begin(), one.fields.end(),
                                       [](FieldFacts const& field) { return field.is_of(Variant::plain); });
    char const* const demanded[] = {"regular", "symmetric", "positive definite"};
    rows +=
        "| `" + std::string(one.name) + "` | " + one.title + " | " + demanded[static_cast<int>(one.demands)];
    for (std::int64_t const number :
         {vectors + 1, traffic.vector_bytes, std::int64_t{traffic.products}, std::int64_t{traffic.sums}})
      rows += " | " + std::to_string(number);
    for (bool const it_does : {one.offers.apart, one.offers.polynomial, one.offers.rounded,
                               one.offers.spans_ranks, one.makes_lanczos_steps})
      rows += it_does ? " | yes" : " | -";
    rows += " |\n";
  }
  EXPECT_NE(page.find("|---|---|---|---|---|---|---|---|---|---|---|---|\n" + rows), std::string::npos)
      << "the table should have these rows:\n"
      << rows;
}

TEST(Methods, AreNamedWhereverPeopleReadWhichThereAre) {
  auto const quoted = [](std::string const& mark) {
    std::string text;
    for (Method method : methods()) text += (text.empty() ? "" : ", ") + mark + name(method) + mark;
    return text;
  };
  EXPECT_NE(content("include/hostless/hostless.h").find("method; /* " + quoted("\"") + " */"),
            std::string::npos);
  EXPECT_NE(content("docs/howto/use-a-gpu.md").find("| methods | " + quoted("`") + " |"), std::string::npos);
}

// A text's data name its descriptor, by which runs find it.
static_assert(std::is_same_v<ConjugateGradient<>::Descriptor, ConjugateGradientMethod>);

struct Misplaced : ConjugateGradientMethod {
  static constexpr Method method = Method::pipelined_cg;
};
struct WithoutResidual : ConjugateGradientMethod {
  static constexpr FieldFacts fields[] = {kept("x"), kept("s"), gathered("p")};
};
struct GatheredFirst : ConjugateGradientMethod {
  static constexpr FieldFacts fields[] = {kept("x"), kept("r"), gathered("p"), kept("q"), kept("z")};
};
struct TooManyValues : ConjugateGradientMethod {
  static constexpr int values = State::values - 1;  // the last two are a polynomial's
};
struct NoRoomForThePolynomial : ConjugateGradientMethod {
  static constexpr FieldFacts fields[] = {kept("x"), kept("r"), scratch("q"), gathered("p")};
};
TEST(Methods, AreHeldAgainstWhatTheRestTakesForGranted) {
  EXPECT_TRUE(is_well_listed(MethodList<ConjugateGradientMethod, SingleReductionMethod>{}));
  EXPECT_FALSE(is_well_listed(MethodList<Misplaced>{}));
  EXPECT_FALSE(is_well_listed(MethodList<WithoutResidual>{}));
  EXPECT_FALSE(is_well_listed(MethodList<GatheredFirst>{}));
  EXPECT_FALSE(is_well_listed(MethodList<TooManyValues>{}));
  EXPECT_FALSE(is_well_listed(MethodList<NoRoomForThePolynomial>{}));
}

}  // namespace
}  // namespace hostless::test
