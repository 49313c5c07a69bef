#pragma once
// Plans of exchanges and what is bound to them, as Python holds them.

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "hostless/exchange/gpu_exchange.hpp"
#include "hostless/exchange/reverse_exchange.hpp"
#include "hostless/plan/reverse.hpp"
#include "hostless/plan/routes.hpp"
#include "ranks.hpp"

namespace hostless::python {

/// How a plan is made, beside who reads what. Equal on all ranks.
struct PlanWords {
  std::string route = "auto";
  int ranks_per_node = 0;  ///< 0: found by host name
  bool around = false;     ///< ghosts lie around the owned items instead of in an array of their own
};

/// Who reads what, and this rank's plan of it: of any number of exchanges in either direction.
class PlannedExchange {
 public:
  using Items = std::vector<std::vector<std::int32_t>>;  ///< a list for each rank

  /// From the global numbers of what this rank owns and reads. Collective.
  static PlannedExchange of_numbers(std::shared_ptr<Ranks> ranks, std::span<std::int64_t const> owned,
                                    std::span<std::int64_t const> ghosts, PlanWords const& words);
  /// From lists of items. Collective.
  static PlannedExchange of_lists(std::shared_ptr<Ranks> ranks, std::int64_t owned, Items const& send,
                                  Items const& receive, PlanWords const& words);
  /// From a plan file, which every rank reads and rank 0 proves. Collective.
  /// Errors  usage      of another number of ranks, or of other ghosts than those of an exchange alone
  ///         bad_input  as load_plans; a plan that the checker refuses
  static PlannedExchange of_file(std::shared_ptr<Ranks> ranks, std::string const& path);
  /// Of a collective, which was planned already: filled, never reversed nor saved.
  static PlannedExchange of_plan(std::shared_ptr<Ranks> ranks, ExchangePlan plan) {
    PlannedExchange made(std::move(ranks));
    made.plan_ = std::move(plan);
    return made;
  }
  /// Rank 0 writes the plans of all. Collective. Errors  environment  the file cannot be written
  void save(std::string const& path) const;

  ReversePlan reverse() const;
  /// Items of the ghosts that lie before the owned ones; 0 where they are apart.
  std::int64_t below() const { return plan_.receive == 0 ? plan_.ghosts_below : 0; }
  ExchangePlan const& plan() const { return plan_; }
  Ranks& ranks() const { return *ranks_; }
  std::shared_ptr<Ranks> const& shared_ranks() const { return ranks_; }
  /// [ghosts] which of the ghosts as they were named lies where.
  std::vector<std::int32_t> const& order() const { return order_; }

 private:
  explicit PlannedExchange(std::shared_ptr<Ranks> ranks) : ranks_(std::move(ranks)) {}
  void make(PlanWords const& words);
  void note_order();

  std::shared_ptr<Ranks> ranks_;
  std::vector<Pattern> patterns_;
  NodeMap nodes_;
  Route route_ = Route::direct;
  PlanOptions options_{ReuseGuarantee::answer, Space::host, true};
  ExchangePlan plan_;
  std::vector<std::int32_t> order_;
  std::vector<std::vector<std::int32_t>> named_;  ///< PlanSet::named
};

/// One array, or two, of a field. Addresses of arrays without items do not matter.
struct FieldWords {
  std::uintptr_t owned = 0, ghosts = 0;  ///< ghosts: where they are apart
  std::size_t item_bytes = 0;
  std::string element;  ///< f32, f64, i32, i64 where ghosts are added
  int values = 1;       ///< elements of an item then
};

/// What an exchange is bound with, beside plan and fields.
struct BindWords {
  bool adds = false;  ///< ghosts to their owners
  double first_s = 0, later_s = 0;
  bool on_gpu = false;  ///< the fields are in the memory of a GPU
  std::string gpu_transport = "auto";
  int device = -1;  ///< of a rank without items
};

/// An exchange over arrays of Python's, of the processor or of a GPU, in either direction.
class BoundArrays final : public Ranks::Bound {
 public:
  /// Collective. `kept` holds the arrays until nothing is on its way any more.
  BoundArrays(std::shared_ptr<PlannedExchange> plan, std::vector<FieldWords> const& fields,
              BindWords const& words, nanobind::object kept);
  ~BoundArrays() override;
  BoundArrays(BoundArrays const&) = delete;
  BoundArrays& operator=(BoundArrays const&) = delete;

  /// Streams are of GPUs; on the processor there is the default one alone, which is nobody's.
  void start(std::uintptr_t stream);
  /// On the processor: waits.
  void finish(std::uintptr_t stream);
  void enqueue(std::uintptr_t stream);
  bool test();
  void wait();
  void close();
  bool lost() const { return lost_; }
  bool closed() const { return !fill_ && !sum_ && !gpu_; }
  bool on_gpu() const { return words_.on_gpu; }
  GpuExchange const& gpu() const;
  /// Tells the other ranks that this one leaves.
  void leave();
  void end() noexcept override;
  nanobind::handle kept() const { return kept_; }

 private:
  std::vector<Field> fields_of(std::vector<FieldWords> const& words) const;
  std::vector<SumField> sum_fields_of(std::vector<FieldWords> const& words);
  void bind(std::vector<FieldWords> const& fields, std::shared_ptr<void> owner);
  void check_open() const;
  template <class Call>
  void queue(Call const& call);
  void require_ranks();
  void give_up() noexcept;
  bool advance();

  /// Ghosts around owned items, side by side as they are sent back.
  struct Gathered {
    std::byte const *below, *above;
    std::size_t bytes_below, bytes_above;
    std::unique_ptr<std::byte[]> together;
  };

  std::shared_ptr<PlannedExchange> plan_;
  BindWords words_;
  nanobind::object kept_;
  std::vector<Gathered> gathered_;
  std::unique_ptr<Exchange> fill_;
  std::unique_ptr<ReverseExchange> sum_;
  std::unique_ptr<GpuExchange> gpu_;
  bool under_way_ = false, lost_ = false, waited_before_ = false;
};

void bind_exchanges(nanobind::module_& module);
/// Behind bind_exchanges.
void bind_neighborhoods(nanobind::module_& module);

}  // namespace hostless::python
