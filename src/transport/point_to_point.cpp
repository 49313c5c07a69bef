#include "hostless/transport/point_to_point.hpp"

#include <string>

#include "hostless/transport/transport.hpp"

namespace hostless {
namespace {

[[noreturn]] void have_memory_instead() {
  throw Error(ErrorCode::usage,
              "a side of a message between ranks that share their memory (it is loaded and stored there). "
              "Ask shares_memory first.");
}

}  // namespace

std::unique_ptr<MessageSide> PointToPoint::open_send(int, std::byte const*, std::size_t) {
  have_memory_instead();
}
std::unique_ptr<MessageSide> PointToPoint::open_receive(int, std::byte*, std::size_t, std::size_t) {
  have_memory_instead();
}

std::unique_ptr<PointToPoint> Transport::point_to_point() {
  throw Error(ErrorCode::usage, "the transport '" + capabilities().transport +
                                    "' carries nothing between two ranks alone (a queue matches by that). "
                                    "Use ranks that are threads, or MPI.");
}

}  // namespace hostless
