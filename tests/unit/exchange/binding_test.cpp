// What an exchange refuses when it is bound, by name and value, on all ranks.
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>

#include "exchange_cases.hpp"
#include "hostless/exchange/exchange.hpp"
#include "hostless/exchange/reverse_exchange.hpp"
#include "refused.hpp"

namespace hostless {
namespace {

using testing::alone;
using testing::patient;
using testing::Reads;

TEST(Binding, RefusesThePlanOfAnotherRank) {
  EXPECT_THROW(run_with_threads_transport(2,
                                          [&](Transport& transport) {
                                            ExchangePlan const plan = alone(2, 0);
                                            double vector = 0;
                                            Exchange const wire(transport, plan, &vector, Reduction::ordered,
                                                                patient);
                                          }),
               Error);
}

// Each field of a plan that this executor does not honour is refused by its name, on all ranks.
TEST(Binding, RefusesFieldsOfAPlanByTheirNames) {
  Reads const reads = Reads({4, 4}).add(0, 1, {1}).add(0, 3, {1}).add(1, 0, {0}).add(1, 2, {0});
  struct {
    ReuseGuarantee reuse_guarantee;
    std::function<void(ExchangePlan&)> how;
    char const* text;
  } const all[] = {
      {ReuseGuarantee::reduction, [](ExchangePlan& p) { p.version = 2; }, "rank 1: version: 2 is not 4"},
      {ReuseGuarantee::reduction, [](ExchangePlan& p) { p.buffers[1].space = Space::device; },
       "rank 1: buffers[1].space: device, which no executor"},
      {ReuseGuarantee::reduction, [](ExchangePlan& p) { p.buffers[0].space = Space::pinned; },
       "buffers[0].space: pinned"},
      {ReuseGuarantee::reduction, [](ExchangePlan& p) { p.buffers[0].epochs = 1; },
       "buffers[0].epochs: 1, but stages[0].in[0].reuse_guarantee is reduction, which needs 2"},
      {ReuseGuarantee::reduction, [](ExchangePlan& p) { p.buffers[1].home = 0; }, "buffers[1].home: 0"},
      {ReuseGuarantee::reduction, [](ExchangePlan& p) { p.stages[0].pack[0].actor = 0; },
       "stages[0].pack[0].actor: 0"},
      {ReuseGuarantee::reduction, [](ExchangePlan& p) { p.stages[0].pack[0].to = p.stages[0].pack[0].from; },
       "stages[0].pack[0].to: writes owned items"},
      {ReuseGuarantee::reduction, [](ExchangePlan& p) { p.stages[0].in[0].to_first = 0; },
       "stages[0].in[0].to: writes owned items"},
      {ReuseGuarantee::reduction,
       [](ExchangePlan& p) {
         p.nodes.socket = {0, 1};
       },
       "stages[0].out[0].locality: socket (`reach` in a plan file), but ranks 1 and 0 are node apart"},
      {ReuseGuarantee::credit,
       [](ExchangePlan& p) { p.stages[1].out[0].trigger = p.stages[0].out[0].trigger; },
       "stages[1].out[0].trigger: 0 is that of a message of stages[0] too"},
      {ReuseGuarantee::credit, [](ExchangePlan& p) { p.stages[0].in.clear(); },
       "stages[1].out[0].answer: 3 is no message of the opposite direction"},
      {ReuseGuarantee::answer, [](ExchangePlan& p) { p.stages[1].in[0].answer = 9; },
       "stages[1].in[0].answer: 9 is no message of the opposite direction"},
      {ReuseGuarantee::answer,
       [](ExchangePlan& p) { p.stages[1].out[0].reuse_guarantee = ReuseGuarantee::credit; },
       "stages[1].out[0].answer: 0 is to be a credit and carries 2 items"},
      {ReuseGuarantee::answer,
       [](ExchangePlan& p) { p.stages[1].out[0].reuse_guarantee = static_cast<ReuseGuarantee>(77); },
       "stages[1].out[0].reuse_guarantee: 77 is none"},
      {ReuseGuarantee::credit,
       [](ExchangePlan& p) {
         p.stages[0].after = {p.stages[1].id};
         p.stages[1].after = {p.stages[0].id};
       },
       "stages[0].after: stage 0 waits for itself"},
  };
  for (auto const& one : all) {
    std::string const text = refused([&] {
      run_with_threads_transport(2, [&](Transport& transport) {
        Rank const me = transport.group().rank();
        ExchangePlan plan =
            make_plan(Route::direct, reads.patterns(), NodeMap::blocks(2, 2), me, {one.reuse_guarantee});
        if (me == 1) one.how(plan);
        std::vector<double> vector(6);
        Exchange const wire(transport, plan, vector.data() + plan.ghosts_below, Reduction::ordered, patient);
      });
    });
    EXPECT_NE(text.find(one.text), std::string::npos) << one.text << " | " << text;
  }
}

TEST(Binding, RefusesASumThatNobodyForms) {
  Reads const reads = Reads({1, 1}).add(0, 0, {1});
  auto const bind = [&](ReuseGuarantee reuse_guarantee) {
    return refused([&] {
      run_with_threads_transport(2, [&](Transport& transport) {
        ExchangePlan const plan = make_plan(Route::direct, reads.patterns(), NodeMap::blocks(2, 2),
                                            transport.group().rank(), {reuse_guarantee});
        std::vector<double> vector(2);
        Exchange wire(transport, plan, {Field::around(vector.data() + plan.ghosts_below, 8)},
                      {patient, {}, {}});
        double const one = 1;
        if (transport.group().rank() == 0) wire.begin_sum({&one, 1});
      });
    });
  };
  EXPECT_NE(
      bind(ReuseGuarantee::reduction).find("reuse_guarantee: reduction, but no all-rank sum lies between"),
      std::string::npos);
  EXPECT_NE(bind(ReuseGuarantee::answer).find("a sum of an exchange that was bound without sums"),
            std::string::npos);
}

TEST(Binding, RefusesWhatRanksDoNotAgreeOn) {
  Reads const reads = Reads({2, 2}).add(0, 0, {1}).add(1, 0, {0});
  auto const bind = [&](std::function<std::vector<Field>(Rank, char*)> const& fields,
                        std::function<void(ExchangePlan&, ExchangeOptions&)> const& change) {
    return refused([&] {
      run_with_threads_transport(2, [&](Transport& transport) {
        Rank const me = transport.group().rank();
        ExchangePlan plan = make_plan(Route::direct, reads.patterns(), NodeMap::blocks(2, 2), me,
                                      {ReuseGuarantee::answer, Space::host, true});
        ExchangeOptions options{patient, {}, {}};
        if (me == 1) change(plan, options);
        char memory[64];
        Exchange const wire(transport, plan, fields(me, memory), options);
      });
    });
  };
  auto const nothing = [](ExchangePlan&, ExchangeOptions&) {};
  auto const two = [](std::size_t first, std::size_t second) {
    return [=](Rank me, char* m) {
      return std::vector<Field>{Field::apart(m, m + 16, me == 0 ? first : second),
                                Field::apart(m + 24, m + 40, me == 0 ? second : first)};
    };
  };
  EXPECT_EQ(bind(two(8, 8), nothing), "accepted");
  EXPECT_NE(bind(two(8, 4), nothing).find("ranks 0 and 1 bind other fields: fields[0].item_bytes is 8 and 4"),
            std::string::npos);
  EXPECT_NE(
      bind([](Rank me, char* m) { return std::vector<Field>(me == 0 ? 1 : 2, Field::apart(m, m + 16, 8)); },
           nothing)
          .find("the 1 ghosts of fields[1] and the 1 ghosts of fields[0] share bytes"),
      std::string::npos);
  EXPECT_NE(bind(
                [](Rank me, char* m) {
                  std::vector<Field> fields{Field::apart(m, m + 16, 8)};
                  if (me == 1)
                    fields.push_back(Field::apart(m, m + 24, 8));  // which two fields may both send
                  return fields;
                },
                nothing)
                .find("ranks 0 and 1 bind 1 and 2 fields"),
            std::string::npos);
  EXPECT_NE(bind(two(8, 8), [](ExchangePlan& p, ExchangeOptions&) { p.fingerprint ^= 1; })
                .find("ranks 0 and 1 bind plans with different fingerprints"),
            std::string::npos);
  EXPECT_NE(bind(two(8, 8), [](ExchangePlan&, ExchangeOptions& o) { o.sums = Reduction::ordered; })
                .find("ranks 0 and 1 do not both ask for sums"),
            std::string::npos);
  auto const one = [](Field const& field) { return [=](Rank, char*) { return std::vector<Field>{field}; }; };
  char some[16];
  EXPECT_NE(bind(one({some, some + 8, 0}), nothing).find("fields[0].item_bytes: 0"), std::string::npos);
  EXPECT_NE(bind(one({nullptr, some, 4}), nothing).find("fields[0].send: no memory for 2 items"),
            std::string::npos);
  EXPECT_NE(bind(one({some, nullptr, 4}), nothing).find("fields[0].receive: no memory for 1 ghosts"),
            std::string::npos);
  EXPECT_NE(bind([](Rank, char*) { return std::vector<Field>{}; }, nothing)
                .find("no fields for a plan that moves items"),
            std::string::npos);
}

/// The plan of two owned items, the second also the one ghost, of a rank alone.
ExchangePlan of_two_items(bool apart) {
  return make_plan(Route::direct, Reads({2}).add(0, 1, {0}).patterns(), NodeMap::blocks(1, 1), 0,
                   {ReuseGuarantee::answer, Space::host, apart});
}

std::string bound(bool apart, std::vector<Field> const& fields,
                  ExchangeOptions const& options = {patient, {}, {}}) {
  auto const transport = single_transport();
  return refused([&] { Exchange const wire(*transport, of_two_items(apart), fields, options); });
}

TEST(Binding, RefusesItemsOfMoreBytesThanThereCanBe) {
  std::size_t const half = std::size_t{1} << 62;
  char m[8];
  EXPECT_EQ(
      bound(true, {Field::apart(m, m + 4, std::size_t{1} << 63)})
          .find("fields[0].item_bytes: 9223372036854775808, which with the fields before it and for 2 items"),
      0u);
  EXPECT_EQ(bound(true, {Field::apart(m, m + 4, half)}).find("fields[0].item_bytes: 4611686018427387904"),
            0u);
  EXPECT_EQ(bound(true, {Field::apart(m, m + 4, 2), Field::apart(m, m + 4, half - 2)})
                .find("fields[1].item_bytes: 4611686018427387902"),
            0u);
}

// An exchange would write into what it sends.
TEST(Binding, RefusesGhostsThatShareBytesWithAnything) {
  char m[64];
  EXPECT_EQ(bound(true, {Field::around(m, 8)})
                .find("the 1 ghosts of fields[0] and the 2 owned items of fields[0] share bytes"),
            0u);
  EXPECT_EQ(bound(true, {Field::apart(m, m + 15, 8)}).find("the 1 ghosts of fields[0] and"), 0u);
  EXPECT_EQ(bound(true, {Field::apart(m, m + 16, 8)}), "accepted");
  EXPECT_EQ(bound(true, {Field::apart(m + 8, m + 1, 8)}).find("the 1 ghosts of fields[0] and"), 0u);
  EXPECT_EQ(bound(true, {Field::apart(m + 8, m, 8)}), "accepted");
  EXPECT_EQ(bound(true, {Field::apart(m, m + 16, 8), Field::apart(m + 20, m + 40, 8)})
                .find("the 1 ghosts of fields[0] and the 2 owned items of fields[1] share bytes"),
            0u);
  EXPECT_EQ(bound(true, {Field::apart(m, m + 16, 8), Field::apart(m, m + 23, 8)})
                .find("the 1 ghosts of fields[1] and the 1 ghosts of fields[0] share bytes"),
            0u);
  EXPECT_EQ(bound(true, {Field::apart(m, m + 16, 8), Field::apart(m, m + 24, 8)}), "accepted");
  EXPECT_EQ(bound(false, {Field::around(m, 8), Field::around(m + 24, 8)}), "accepted");
  EXPECT_EQ(bound(false, {Field::around(m, 8), Field::around(m + 16, 8)})
                .find("the 1 ghosts of fields[0] and the 2 owned items of fields[1] share bytes"),
            0u);
}

TEST(Binding, RefusesLimitsAndSumsThatAreNone) {
  char m[24];
  auto const with = [&](WaitLimits limits, std::optional<Reduction> sums) {
    return bound(true, {Field::apart(m, m + 16, 8)}, {limits, {}, sums});
  };
  double const none = std::numeric_limits<double>::quiet_NaN(),
               endless = std::numeric_limits<double>::infinity();
  EXPECT_EQ(with({endless, 1e-3}, Reduction::fast), "accepted");
  EXPECT_EQ(with({0, 1}, {}).find("options.limits.first_s: 0 is no time to wait for"), 0u);
  EXPECT_EQ(with({none, 1}, {}).find("options.limits.first_s: nan"), 0u);
  EXPECT_EQ(with({1, -2}, {}).find("options.limits.later_s: -2"), 0u);
  EXPECT_EQ(with({1, 1}, static_cast<Reduction>(9)).find("options.sums: 9 is no Reduction"), 0u);
}

// Each of these fits into a number; what two ranks receive of it, or a buffer for it, does not.
TEST(Binding, RefusesMessagesLargerThanAnyMemory) {
  for (int const power : {48, 62}) {
    std::string const text = refused([&] {
      run_with_threads_transport(3, [&](Transport& transport) {
        Rank const me = transport.group().rank();
        ExchangePlan const plan =
            make_plan(Route::direct, Reads({1, 0, 0}).add(0, 0, {1, 2}).patterns(), NodeMap::blocks(3, 3), me,
                      {ReuseGuarantee::answer, Space::host, true});
        char byte = 0;
        char* const owned = me == 0 ? &byte : nullptr;
        char* const ghost = me == 0 ? nullptr : &byte;
        Exchange const wire(transport, plan, {Field::apart(owned, ghost, std::size_t{1} << power)},
                            {patient, {}, {}});
      });
    });
    EXPECT_NE(text.find("(more than any memory has). Exchange less."), std::string::npos) << text;
  }
}

/// As the threads are, with an all-reduce, which nobody calls, and bytes that may be touched later.
class LateTransport final : public Transport {
 public:
  explicit LateTransport(Transport& inner) : inner_(inner) {}
  Capabilities capabilities() const override {
    Capabilities can = inner_.capabilities();
    can.all_reduce = Support::native;
    can.late_access = true;
    return can;
  }
  Group& group() override { return inner_.group(); }
  std::unique_ptr<Endpoint> bind(Binding const& binding) override {
    from = binding.out.empty() ? nullptr : binding.out[0].from;
    to = binding.in.empty() ? nullptr : binding.in[0].to;
    return inner_.bind(binding);
  }
  void const *from = nullptr, *to = nullptr;

 private:
  Transport& inner_;
};

// Where they agree on sums but not on their kind, ranks would wait for each other in different calls.
TEST(Binding, RefusesSumsOfAnotherKind) {
  EXPECT_EQ(refused([&] {
              run_with_threads_transport(3, [&](Transport& threads) {
                LateTransport transport(threads);
                Rank const me = transport.group().rank();
                double vector = 0;
                Exchange const wire(transport, alone(3, me), &vector,
                                    me == 2 ? Reduction::fast : Reduction::ordered, patient);
              });
            }).find("ranks 0 and 2 ask for other sums, ordered and fast"),
            0u);
}

// Without an owner the caller may give its memory back after a loss, when messages are still under way.
TEST(Binding, MemoryWithoutAnOwnerIsNotGivenToAnMpi) {
  Reads const reads = Reads({1, 1}).add(0, 0, {1}).add(1, 0, {0});
  run_with_threads_transport(2, [&](Transport& threads) {
    LateTransport transport(threads);
    Rank const me = threads.group().rank();
    auto const patterns = reads.patterns();
    PlanOptions const apart{ReuseGuarantee::answer, Space::host, true};
    ExchangePlan const plan = make_plan(Route::direct, patterns, NodeMap::blocks(2, 2), me, apart);
    struct Memory {
      double own, ghost;
    };
    auto const memory = std::make_shared<Memory>(Memory{7.0 + me, 0});
    Field const field = Field::apart(&memory->own, &memory->ghost, sizeof(double));
    for (bool const owned : {false, true}) {
      memory->ghost = 0;
      std::shared_ptr<void> owner;
      if (owned) owner = memory;
      Exchange wire(transport, plan, {field}, {patient, owner, {}});
      EXPECT_EQ(transport.from == &memory->own, owned);
      EXPECT_EQ(transport.to == &memory->ghost, owned);
      wire.start();
      ASSERT_TRUE(wire.wait());
      EXPECT_EQ(memory->ghost, 8.0 - me);
      double share = 1 + me, total = 10;
      auto const back = make_reverse_plan(Route::direct, patterns, NodeMap::blocks(2, 2), me);
      ReverseExchange add(transport, back, {{&share, &total, Element::f64}}, {patient, owner, {}});
      EXPECT_EQ(transport.from == &share, owned);
      for (int turn = 1; turn < 3; ++turn, share *= 2) {
        add.start();
        ASSERT_TRUE(add.wait());
        EXPECT_EQ(total, 10 + (2 - me) * (turn == 1 ? 1 : 3));
      }
    }
  });
}

TEST(Binding, RefusesTwoArraysForAPlanOfOne) {
  ExchangePlan const plan =
      make_plan(Route::direct, Reads({2}).add(0, 1, {0}).patterns(), NodeMap::blocks(1, 1), 0);
  auto const transport = single_transport();
  char memory[64];
  EXPECT_NE(refused([&] {
              Exchange const wire(*transport, plan, {Field::apart(memory, memory + 32, 8)},
                                  {patient, {}, Reduction::ordered});
            }).find("fields[0].receive: another array than `send`"),
            std::string::npos);
}

}  // namespace
}  // namespace hostless
