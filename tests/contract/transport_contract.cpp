// What every transport promises. Each number that travels says where it comes from, so that each can be
// predicted exactly on the rank that receives it.
#include "transport_contract.hpp"

#include <random>
#include <stdexcept>
#include <string>

#include "endpoints/party.hpp"
#include "hostless/base/wait.hpp"
#include "sample.hpp"
#include "transport_contract_parts.hpp"

namespace hostless::contract {
namespace {

Links all_to_all(int ranks) {
  Links links;
  for (int s = 0; s < ranks; ++s) {
    for (int t = 0; t < ranks; ++t) {
      if (s != t) links.push_back({s * ranks + t, s, t, static_cast<std::size_t>(3 + 5 * s + t)});
    }
  }
  return links;
}

// Several messages between some ranks, none between others, sizes from nothing to beyond any eager limit, ids
// in no order and larger than any MPI tag.
Links irregular(int ranks, unsigned seed) {
  std::mt19937 random(seed);
  Links links;
  int id = 2000000000;
  for (int s = 0; s < ranks; ++s) {
    for (int t = 0; t < ranks; ++t) {
      for (unsigned k = 0; k < random() % 4; ++k) {
        std::size_t const sizes[] = {0, 1, random() % 100, 2000 + random() % 6000};
        links.push_back({id, s, t, sizes[random() % 4]});
        id -= 1 + static_cast<int>(random() % 1000);
      }
    }
  }
  return links;
}

void drive(Transport& transport, Links const& links, std::uint32_t epochs, bool delays) {
  Party party(transport, links);
  std::mt19937 random(static_cast<unsigned>(transport.group().rank() + 1));
  for (std::uint32_t epoch = 1; epoch <= epochs; ++epoch) {
    if (delays && random() % 4 == 0) nap(1e-6 * static_cast<double>(random() % 500));
    party.start(epoch);
    if (delays && random() % 4 == 0) nap(1e-6 * static_cast<double>(random() % 500));
    party.finish(epoch);
    party.gather(epoch, 1 + epoch % 4);
  }
}

void ring_case(Transport& t) { drive(t, ring(t.group().size(), 37), 50, false); }
void all_to_all_case(Transport& t) { drive(t, all_to_all(t.group().size()), 50, false); }
void delays_case(Transport& t) {
  drive(t, irregular(t.group().size(), 7), test::of_all(200u, 40u), true);
  for (unsigned seed = 0; seed < 5; ++seed) drive(t, irregular(t.group().size(), seed), 4, false);
}

// A stream of messages in one direction, kept from running away by answers without bytes.
void credit_case(Transport& t) {
  int const ranks = t.group().size(), me = t.group().rank();
  Links links;
  for (int r = 1; r < ranks; ++r) links.push_back({r, 0, r, 500});
  for (int r = 1; r < ranks; ++r) links.push_back({ranks + r, r, 0, 0});
  Party party(t, links);
  for (std::uint32_t epoch = 1; epoch <= 300; ++epoch) {
    if (me == 0) {
      party.start(epoch);
      party.finish(epoch);  // ends when every answer is here
    } else {
      party.endpoint->receive(0, epoch);
      await(
          *party.endpoint, [&] { return party.endpoint->received(0); }, "data");
      party.endpoint->send(0, epoch);
      await(
          *party.endpoint, [&] { return party.endpoint->sent(0); }, "credit");
    }
  }
  t.group().barrier();
}

void polls_case(Transport& t) {
  Party party(t, ring(t.group().size(), 3));
  expect(!party.endpoint->peer_left(), "nobody left");
  party.start(1);
  party.finish(1);
  expect(party.endpoint->received(0) && party.endpoint->sent(0), "a finished message stays finished");
  party.gather(1, 4);
  Endpoint& e = *party.endpoint;
  double const one = 1.0;
  std::vector<double> all(static_cast<std::size_t>(t.group().size()));
  e.gather({&one, 1});
  await(
      e, [&] { return e.gathered(all); }, "a gather");
  expect(e.gathered(all) && all.back() == 1.0, "a finished gather can be read again");
  double const five[5] = {};
  expect_error(ErrorCode::usage, "a gather wider than bound", [&] { e.gather(five); });
  t.group().barrier();
}

void started_twice_case(Transport& t) {
  Party party(t, ring(t.group().size(), 3));
  Endpoint& e = *party.endpoint;
  e.receive(0, 1);
  expect_error(ErrorCode::usage, "receive started twice", [&] { e.receive(0, 1); });
  t.group().barrier();
  e.send(0, 1);
  await(
      e, [&] { return e.received(0) && e.sent(0); }, "the message after the error");
  party.gather(1, 2);
}

void all_reduce_case(Transport& t) {
  Party party(t, {});
  Endpoint& e = *party.endpoint;
  double const mine[2] = {1.0 + t.group().rank(), 0.5};
  if (t.capabilities().all_reduce == Support::absent) {
    expect_error(ErrorCode::usage, "an absent all-reduce", [&] { e.all_reduce(mine); });
    return;
  }
  double const n = t.group().size();
  for (int k = 0; k < 20; ++k) {
    double sums[2] = {};
    e.all_reduce(mine);
    await(
        e, [&] { return e.all_reduced(sums); }, "an all-reduce");
    expect(sums[0] == n * (n + 1) / 2 && sums[1] == n / 2, "the sums");
  }
}

void mismatch_case(Transport& t) {
  int const ranks = t.group().size(), me = t.group().rank();
  std::vector<std::byte> room(64);
  auto const refused = [&](std::string const& what, Binding const& binding) {
    return expect_error(ErrorCode::usage, what, [&] { t.bind(binding); });
  };
  Binding none, size = none, sender = none, receiver = none, twice = none, rank = none, wide = none;
  if (me == 0) size.out.push_back({7, ranks - 1, room.data(), 16});
  if (me == ranks - 1) size.in.push_back({7, 0, room.data(), 24});
  auto const text = refused("sizes differ", size);
  expect(text.find("16") != text.npos && text.find("24") != text.npos, "both sizes are named: " + text);
  if (me == 0) receiver.out.push_back({8, ranks - 1, room.data(), 16});
  refused("a message without receiver", receiver);
  if (me == 0) sender.in.push_back({8, ranks - 1, room.data(), 16});
  refused("a message without sender", sender);
  if (me == 0) twice.out = {{9, ranks - 1, room.data(), 8}, {9, ranks - 1, room.data(), 8}};
  if (me == ranks - 1) twice.in = {{9, 0, room.data(), 8}, {9, 0, room.data() + 8, 8}};
  refused("an id twice", twice);
  if (me == 0) rank.out.push_back({1, ranks, room.data(), 8});
  refused("a rank that does not exist", rank);
  wide.gather_width = 1000;
  refused("a gather too wide", wide);
  wide.gather_width = me == 0 ? 2 : 3;
  if (ranks > 1) refused("widths differ", wide);
  drive(t, all_to_all(ranks), 3, false);  // and the transport is as good as before
}

void rebind_case(Transport& t) {
  int const ranks = t.group().size();
  for (int round = 0; round < 8; ++round) {
    Party first(t, ring(ranks, 5)), second(t, all_to_all(ranks));  // alive together, same ranks, own messages
    for (std::uint32_t epoch = 1; epoch <= 3; ++epoch) {
      first.start(epoch);
      second.start(epoch);
      second.finish(epoch);
      first.finish(epoch);
      first.gather(epoch, 2);
      second.gather(epoch, 3);
    }
  }
}

}  // namespace

std::vector<Case> const& cases() {
  static std::vector<Case> const all = {
      {"group", 1, false, group_case},
      {"exchange", 1, false, exchange_case},
      {"big_exchange", 1, false, big_exchange_case},
      {"together", 1, false, together_case},
      {"ring", 1, false, ring_case},
      {"all_to_all", 1, false, all_to_all_case},
      {"delays", 1, false, delays_case},
      {"credit", 2, false, credit_case},
      {"polls", 1, false, polls_case},
      {"started_twice", 1, false, started_twice_case},
      {"all_reduce", 1, false, all_reduce_case},
      {"mismatch", 1, false, mismatch_case},
      {"rebind", 1, false, rebind_case},
      {"leave", 2, false, leave_case},
      {"last_words", 2, false, last_words_case},
      {"silent", 2, true, silent_case},
      {"alone", 2, true, alone_case},
  };
  return all;
}

Case const& find_case(char const* name) {
  for (Case const& c : cases()) {
    if (std::string(name) == c.name) return c;
  }
  throw std::runtime_error(std::string("no contract case ") + name);
}

}  // namespace hostless::contract
