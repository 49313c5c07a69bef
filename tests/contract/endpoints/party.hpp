#pragma once
// A rank's part in a pattern of messages: each number that travels says where it comes from.

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "hostless/base/wait.hpp"
#include "transport_contract_parts.hpp"

namespace hostless::contract {

template <class Poll>
void await(Endpoint& endpoint, Poll&& poll, std::string const& what) {
  auto const waited = wait_for(
      poll, [&] { return endpoint.peer_left(); }, Deadline::after(240));
  expect(waited == Waited::done, what + (waited == Waited::late ? " never came" : ": a peer left"));
}

struct Link {
  int id, source, target;
  std::size_t count;  // doubles
};
using Links = std::vector<Link>;

// This rank's part of a pattern of messages, with buffers, and an endpoint bound to them.
class Party {
 public:
  Party(Transport& transport, Links const& links, int gather_width = 4) : transport_(transport) {
    int const me = transport.group().rank();
    for (Link const& l : links) {
      if (l.source == me) out_.push_back({l, std::vector<double>(l.count)});
      if (l.target == me) in_.push_back({l, std::vector<double>(l.count)});
    }
    Binding binding;
    binding.gather_width = gather_width;
    for (auto& [l, data] : out_) {
      binding.out.push_back({l.id, l.target, reinterpret_cast<std::byte const*>(data.data()), 8 * l.count});
    }
    for (auto& [l, data] : in_) {
      binding.in.push_back({l.id, l.source, reinterpret_cast<std::byte*>(data.data()), 8 * l.count});
    }
    endpoint = transport.bind(binding);
  }

  void start(std::uint32_t epoch) {
    for (std::size_t k = 0; k < in_.size(); ++k) {
      std::fill(in_[k].data.begin(), in_[k].data.end(), -1.0);
      endpoint->receive(static_cast<int>(k), epoch);
    }
    for (std::size_t k = 0; k < out_.size(); ++k) {
      auto& [l, data] = out_[k];
      for (std::size_t i = 0; i < data.size(); ++i) data[i] = value(l, i, epoch);
      endpoint->send(static_cast<int>(k), epoch);
    }
  }
  // Of all messages to this rank.
  void expect_values(std::uint32_t epoch) const {
    for (auto const& [l, data] : in_)
      for (std::size_t i = 0; i < data.size(); ++i)
        if (data[i] != value(l, i, epoch))  // else nobody reads the words, which take long
          expect(false, name(l, epoch) + ", item " + std::to_string(i));
  }
  void finish(std::uint32_t epoch) {
    for (std::size_t k = 0; k < in_.size(); ++k)
      await(
          *endpoint, [&] { return endpoint->received(static_cast<int>(k)); }, name(in_[k].link, epoch));
    expect_values(epoch);
    for (std::size_t k = 0; k < out_.size(); ++k) {
      await(
          *endpoint, [&] { return endpoint->sent(static_cast<int>(k)); }, "the end of a send");
    }
  }
  void gather(std::uint32_t epoch, std::size_t width) {
    auto const ranks = static_cast<std::size_t>(transport_.group().size());
    auto const contribution = [&](std::size_t rank, std::size_t k) {
      return 1e6 * static_cast<double>(rank) + 10.0 * epoch + static_cast<double>(k) + 0.1;
    };
    std::vector<double> mine(width), all(width * ranks, -1.0);
    for (std::size_t k = 0; k < width; ++k) {
      mine[k] = contribution(static_cast<std::size_t>(transport_.group().rank()), k);
    }
    endpoint->gather(mine);
    std::fill(mine.begin(), mine.end(), -2.0);  // the contribution was taken
    await(
        *endpoint, [&] { return endpoint->gathered(all); }, "a gather");
    for (std::size_t r = 0; r < ranks; ++r) {
      for (std::size_t k = 0; k < width; ++k) {
        if (all[r * width + k] != contribution(r, k))
          expect(false, "gather of epoch " + std::to_string(epoch));
      }
    }
  }

  std::unique_ptr<Endpoint> endpoint;

 private:
  struct Buffer {
    Link link;
    std::vector<double> data;
  };
  static std::string name(Link const& l, std::uint32_t epoch) {
    return "message " + std::to_string(l.id) + " of epoch " + std::to_string(epoch);
  }
  // Global index of the item, marked with the epoch: below 2^53, so exact.
  static double value(Link const& l, std::size_t item, std::uint32_t epoch) {
    return epoch * 1e9 + l.id * 1e5 + static_cast<double>(item);
  }
  Transport& transport_;
  std::vector<Buffer> out_, in_;
};

inline Links ring(int ranks, std::size_t count) {
  Links links;
  for (int r = 0; r < ranks; ++r) links.push_back({100 + r, r, (r + 1) % ranks, count});
  return links;
}

}  // namespace hostless::contract
