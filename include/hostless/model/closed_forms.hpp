#pragma once

#include <array>
#include <string>
#include <vector>

#include "hostless/model/machine_model.hpp"

namespace hostless {

/// The ways of an irregular exchange that table 6 of Lockhart et al. 2022 has closed forms of. 2-Step All:
/// every GPU sends to every node; 2-Step 1: all that a node receives comes from one GPU and stays where it
/// arrives.
enum class Strategy : std::uint8_t { standard, three_step, two_step_all, two_step_one, split_md, split_dd };
inline constexpr std::array all_strategies = {Strategy::standard,     Strategy::three_step,
                                              Strategy::two_step_all, Strategy::two_step_one,
                                              Strategy::split_md,     Strategy::split_dd};
char const* name(Strategy strategy);

/// The two readings of a formula: as printed, and with every symbol counted as the text describes the
/// strategy.
enum class Reading : std::uint8_t { literal, chosen };
inline constexpr std::array all_readings = {Reading::literal, Reading::chosen};
char const* name(Reading reading);

/// The symbols of table 7, and what the rows for standard communication need beside them.
struct ExchangeSymbols {
  double s_proc = 0.0;          ///< most bytes that a process (GPU) sends
  double s_node = 0.0;          ///< most bytes that a node injects
  double s_node_to_node = 0.0;  ///< most bytes between two nodes
  double m_proc_to_node = 0.0;  ///< most nodes that a process sends to
  double m_node_to_node = 0.0;  ///< most messages between two nodes
  double m_proc = 0.0;          ///< most messages of a process, standard communication: m of equation 2.2
  double m_node = 0.0;          ///< nodes that a node sends to
  /// Share of the bytes that is left where a node gets each value once (section 4.6: 0.75); of all but
  /// standard.
  double kept = 1.0;

  /// Section 4.6: a node sends `messages` of `bytes` to `nodes`, evenly from all of its GPUs.
  static ExchangeSymbols even(double messages, double bytes, double nodes, double kept,
                              NodeShape const& node);
};

/// What a closed form adds up, in seconds.
struct ClosedForm {
  Strategy strategy = Strategy::standard;
  bool staged = true;  ///< through the host, else device-aware
  Reading reading = Reading::literal;
  double off_node = 0.0, on_node = 0.0, copies = 0.0;
  double seconds() const { return off_node + on_node + copies; }
};

/// Equations of section 4 and the rows of table 6, of one machine.
///
/// alpha and beta are those of the protocol of the size of one message. Sizes in bytes, times in seconds.
/// Where a node has one socket, terms of the other one vanish.
///
/// | symbol | literal | chosen |
/// |---|---|---|
/// | standard, staged | no copies | T_copy(s_proc, s_proc) |
/// | T_copy (4.5) | alpha and beta of H2D for what is sent, of D2H for what is received | D2H is sent, H2D
/// received | | s received | s_node_to_node | s_proc: what a GPU receives in the end | | 3-Step T_off |
/// m_node_to_node messages, s_node_to_node bytes | a message a node that the process is paired with, m_node /
/// GPUs | | 3-Step T_on | one with s_node_to_node each way | one for each of these nodes, with the part of
/// one GPU | | 2-Step T_on | s_proc to each GPU | s_proc split across the GPUs; none for 2-Step 1 | | 2-Step
/// T_off | m_proc_to_node messages | the same; 2-Step 1: m_node / GPUs | | Split T_off | m_proc_to_node
/// messages, s_node / ppn bytes | pieces by algorithm 1 with the rendezvous threshold as cap, dealt to all
/// processes | | T_on-split (4.2) | pps / ppg messages a socket of all of s_node | a message to each process
/// with a piece, of its share of s_proc |
///
/// Source: S. Lockhart, A. Bienz, W. D. Gropp, L. N. Olson 2022, sections 4.1 to 4.5, tables 6 and 7.
class ClosedForms {
 public:
  /// Errors  bad_input  the machine has no data of something that the forms need
  explicit ClosedForms(MachineModel const& machine);

  double on_node(MemoryKind memory, double s) const;  ///< T_on, 4.1
  double on_split(double pps, double ppg,
                  double message) const;  ///< T_on-split, 4.2; `message`: bytes of one
  double off_node(double m, double s, double s_node,
                  double message) const;                             ///< T_off, 4.3; `message`: bytes of one
  double off_node_device(double m, double s, double message) const;  ///< T_off-DA, 4.4
  double copies(double s_send, double s_recv, int processes, Reading reading) const;  ///< T_copy, 4.5

  /// Errors  usage  a device-aware split: table 6 has none
  ClosedForm of(Strategy strategy, bool staged, Reading reading, ExchangeSymbols const& symbols) const;
  /// All rows of table 6, 2-Step twice.
  std::vector<ClosedForm> table(Reading reading, ExchangeSymbols const& symbols) const;
  /// The largest piece of a split exchange: the largest eager message.
  double message_cap() const { return message_cap_; }

 private:
  Line line(MessageSpan span, MemoryKind memory, double message) const;
  ClosedForm split(Strategy strategy, Reading reading, ExchangeSymbols const& symbols) const;
  ClosedForm two_step(Strategy strategy, bool staged, Reading reading, ExchangeSymbols const& symbols) const;
  ClosedForm three_step(bool staged, Reading reading, ExchangeSymbols const& symbols) const;
  ClosedForm standard(bool staged, Reading reading, ExchangeSymbols const& symbols) const;
  double off(bool staged, double m, double s, double s_node, double message) const;

  CostTables tables_;
  NodeShape node_;
  double injection_ = 0.0, message_cap_ = 0.0;
};

}  // namespace hostless
