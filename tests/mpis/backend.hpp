#pragma once
// What the build line of a program chooses, as the prototype's own tests do: the type of its queues. Buffers are
// memory that any of them reaches.

#include <cstdlib>

#include "stream-triggering.h"

#ifndef QUEUE_TYPE
#define QUEUE_TYPE THREAD
#endif

template <class T>
class Reached {
 public:
  explicit Reached(int count) : count_(count) {
    void* memory = nullptr;
    if (MPIS_Alloc_mem(count * static_cast<MPI_Aint>(sizeof(T)), MPI_INFO_NULL, &memory) != MPIS_SUCCESS)
      std::abort();
    data_ = static_cast<T*>(memory);
    for (T& one : *this) one = T{};
  }
  Reached(Reached const&) = delete;
  Reached& operator=(Reached const&) = delete;
  ~Reached() { MPIS_Free_mem(data_); }
  T* data() const { return data_; }
  MPI_Count size() const { return count_; }
  T* begin() const { return data_; }
  T* end() const { return data_ + count_; }
  T& operator*() const { return *data_; }

 private:
  T* data_ = nullptr;
  int count_;
};
