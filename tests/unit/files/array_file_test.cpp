#include "hostless/files/array_file.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <numeric>

#include "samples.hpp"

namespace {

using namespace hostless;
using samples::common_error;
using samples::Folder;

using Shape = std::vector<std::int64_t>;

// The bytes of a .npy file, made by hand.
std::string npy(std::string const& descr, bool fortran, std::string const& shape, std::string const& data) {
  std::string const text = "{'descr': '" + descr + "', 'fortran_order': " + (fortran ? "True" : "False") +
                           ", 'shape': (" + shape + "), }\n";
  return std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(text.size()) + '\0' + text + data;
}

template <class T>
std::string bytes_of(std::vector<T> const& values, bool reversed = false) {
  std::string all;
  for (T const value : values) {
    char one[sizeof(T)];
    std::memcpy(one, &value, sizeof value);
    if (reversed) std::reverse(one, one + sizeof value);
    all.append(one, sizeof one);
  }
  return all;
}

// Every value says where it belongs: digits of its indices.
double value_at(Shape const& index) {
  double value = 0;
  for (std::int64_t const i : index) value = 10 * value + static_cast<double>(i);
  return value + 0.5;
}

// Values of an array in the order in which the axes `fastest last` run.
template <class T>
std::vector<T> values_of(Shape const& shape, bool fortran) {
  std::vector<T> all;
  Shape index(shape.size(), 0);
  std::int64_t const count =
      std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
  for (std::int64_t k = 0; k < count; ++k) {
    std::int64_t left = k;
    for (std::size_t j = 0; j < shape.size(); ++j) {
      std::size_t const a = fortran ? j : shape.size() - 1 - j;
      index[a] = left % shape[a];
      left /= shape[a];
    }
    all.push_back(static_cast<T>(value_at(index)));
  }
  return all;
}

// Boxes of two ranks along each of the first axes; `ranks` is 1, 2, 4 or 8.
ArrayPart part_of(Shape const& shape, int rank, int ranks) {
  ArrayPart part{Shape(shape.size(), 0), shape};
  for (std::size_t a = shape.size(); a-- > 0 && ranks > 1; ranks /= 2, rank /= 2) {
    std::int64_t const middle = (shape[a] + 1) / 2;
    (rank % 2 == 0 ? part.high[a] : part.low[a]) = middle;
  }
  return part;
}

template <class T>
void expect_part(ArrayPart const& part, std::vector<T> const& read) {
  std::size_t k = 0;
  Shape index = part.low;
  for (T const value : read) {
    EXPECT_EQ(value, static_cast<T>(value_at(index))) << k;
    for (std::size_t a = index.size(); a-- > 0;) {
      if (++index[a] < part.high[a]) break;
      index[a] = part.low[a];
    }
    ++k;
  }
}

template <class T>
std::vector<T> room_for(ArrayPart const& part) {
  std::int64_t count = 1;
  for (std::size_t a = 0; a < part.low.size(); ++a) count *= part.high[a] - part.low[a];
  return std::vector<T>(static_cast<std::size_t>(count));
}

template <class T>
void expect_read(std::string const& path, Shape const& shape, int ranks) {
  run_on_threads(ranks, [&](Group& group) {
    ArrayForm const form = array_form(group, path);
    EXPECT_EQ(form, (ArrayForm{shape, sizeof(T)}));
    ArrayPart const part = part_of(shape, group.rank(), ranks);
    auto mine = room_for<T>(part);
    read_array(group, path, form, part, std::as_writable_bytes(std::span(mine)));
    expect_part(part, mine);
  });
}

TEST(ArrayFile, EveryOrderTypeAndNumberOfAxesIsRead) {
  Folder folder;
  for (auto const& [shape, text] :
       {std::pair<Shape, std::string>{{7}, "7,"}, {{5, 9}, "5, 9"}, {{4, 3, 7}, "4, 3, 7"}})
    for (bool const fortran : {false, true})
      for (int const ranks : {1, 2, 4}) {
        if (ranks > 2 && shape.size() == 1) continue;
        auto const doubles = values_of<double>(shape, fortran);
        auto const floats = values_of<float>(shape, fortran);
        expect_read<double>(folder.write("d", npy("<f8", fortran, text, bytes_of(doubles))), shape, ranks);
        expect_read<double>(folder.write("D", npy(">f8", fortran, text, bytes_of(doubles, true))), shape,
                            ranks);
        expect_read<float>(folder.write("f", npy("<f4", fortran, text, bytes_of(floats))), shape, ranks);
        expect_read<float>(folder.write("F", npy(">f4", fortran, text, bytes_of(floats, true))), shape,
                           ranks);
      }
}

TEST(ArrayFile, ManyRanksWriteOneFile) {
  Folder folder;
  for (Shape const& shape : {Shape{5, 9}, Shape{4, 3, 7}})
    for (int const ranks : {1, 2, 4, 8}) {
      if (ranks == 8 && shape.size() == 2) continue;
      std::string const path = folder.file("out.npy");
      run_on_threads(ranks, [&](Group& group) {
        ArrayPart const part = part_of(shape, group.rank(), ranks);
        auto mine = room_for<float>(part);
        Shape index = part.low;
        for (float& value : mine) {
          value = static_cast<float>(value_at(index));
          for (std::size_t a = index.size(); a-- > 0;) {
            if (++index[a] < part.high[a]) break;
            index[a] = part.low[a];
          }
        }
        write_array(group, path, {shape, 4}, part, std::as_bytes(std::span(mine)));
      });
      std::string const all = samples::content(path), data = bytes_of(values_of<float>(shape, false));
      EXPECT_EQ(all.substr(0, 8), std::string("\x93NUMPY\x01\x00", 8));
      EXPECT_EQ((all.size() - data.size()) % 64, 0u);
      EXPECT_NE(all.find("{'descr': '<f4', 'fortran_order': False, 'shape': ("), std::string::npos);
      EXPECT_EQ(all.substr(all.size() - data.size()), data);
      EXPECT_EQ(folder.files(), 1u);  // no temporary one
      expect_read<float>(path, shape, 2);
    }
}

std::string refusal(std::string const& path) {
  Error const error = common_error(2, [&](Group& group) {
    ArrayForm const form = array_form(group, path);
    ArrayPart const part = part_of(form.shape, group.rank(), 2);
    auto mine = room_for<double>(part);
    read_array(group, path, form, part,
               std::as_writable_bytes(std::span(mine))
                   .first(mine.size() * static_cast<std::size_t>(form.value_bytes)));
  });
  EXPECT_EQ(error.code(), ErrorCode::bad_input);
  return error.what();
}

TEST(ArrayFile, WhatIsNoArrayOfRealNumbersIsRefused) {
  Folder folder;
  std::vector<double> const four{1, 2, 3, 4};
  auto const says = [&](std::string const& content, std::string const& words) {
    std::string const text = refusal(folder.write("a.npy", content));
    EXPECT_TRUE(text.starts_with(folder.file("a.npy") + ": ")) << text;
    EXPECT_NE(text.find(words), std::string::npos) << text;
  };
  says(npy("<i8", false, "2, 2", bytes_of(four)), "holds integers");
  says(npy("|b1", false, "2, 2", "\1\1\1\1"), "holds booleans");
  says(npy("<f2", false, "2, 2", "aabbccdd"), "numbers of 2 bytes");
  says(npy("<c16", false, "1, 2", bytes_of(four)), "complex");
  says(npy("<f8", false, "", bytes_of(std::vector<double>{1})), "0 axes");
  says(npy("<f8", false, "2, 2", bytes_of(four).substr(1)), "its shape (2, 2)");
  says("1 2 3 4 5 6 7 8 9", "does not begin as a NumPy array");
}

TEST(ArrayFile, ValuesThatAreNotFiniteAreRefusedWithTheirIndices) {
  Folder folder;
  for (bool const fortran : {false, true}) {
    std::vector<double> values(6, 1.0);
    values[4] = std::numeric_limits<double>::quiet_NaN();
    std::string const text = refusal(folder.write("n.npy", npy("<f8", fortran, "2, 3", bytes_of(values))));
    EXPECT_NE(text.find(fortran ? "the value at [0, 2] is nan" : "the value at [1, 1] is nan"),
              std::string::npos)
        << text;
    std::vector<float> floats(6, 1.0F);
    floats[5] = -std::numeric_limits<float>::infinity();
    std::string const infinite =
        refusal(folder.write("i.npy", npy("<f4", fortran, "2, 3", bytes_of(floats))));
    EXPECT_NE(infinite.find("the value at [1, 2] is -inf"), std::string::npos) << infinite;
  }
}

TEST(ArrayFile, PartsThatAreNoneAreRefused) {
  Folder folder;
  std::string const path =
      folder.write("a.npy", npy("<f8", false, "2, 2", bytes_of(std::vector<double>(4, 1.0))));
  for (ArrayPart const& part : {ArrayPart{{0, 0}, {2, 3}}, ArrayPart{{0}, {2}}, ArrayPart{{0, 0}, {2, 1}}}) {
    Error const error = common_error(1, [&](Group& group) {
      std::vector<double> room(4);
      read_array(group, path, {{2, 2}, 8}, part, std::as_writable_bytes(std::span(room)));
    });
    EXPECT_EQ(error.code(), ErrorCode::usage) << error.what();
  }
}

TEST(ArrayFile, AFileThatHasChangedIsRefused) {
  Folder folder;
  std::string const path =
      folder.write("a.npy", npy("<f8", false, "2, 2", bytes_of(std::vector<double>(4, 1.0))));
  Error const error = common_error(1, [&](Group& group) {
    std::vector<double> room(6);
    read_array(group, path, {{2, 3}, 8}, {{0, 0}, {2, 3}}, std::as_writable_bytes(std::span(room)));
  });
  EXPECT_NE(std::string(error.what()).find("than a moment ago"), std::string::npos) << error.what();
}

}  // namespace
