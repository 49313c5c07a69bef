// Which text a group of sliced ELL has for several right-hand sides. Included by the texts of an instruction
// set, inside their namespace, which has whole_diagonals<W> and names its target (HOSTLESS_SIDES_VECTOR): an
// attribute cannot be a template's argument.
HOSTLESS_SIDES_VECTOR void whole_diagonals_of_sides(MatrixView const& a, SellGroup const& group, int lanes,
                                                    int at_out, RightHandSides const& of) {
  switch (of.count) {
    case 2:
      return whole_diagonals<2>(a, group, lanes, at_out, of);
    case 3:
      return whole_diagonals<3>(a, group, lanes, at_out, of);
    default:
      return whole_diagonals<wide_sides>(a, group, lanes, at_out, of);
  }
}

template <int b>
HOSTLESS_SIDES_VECTOR void sell_of_sides(MatrixView const& a, int s, std::int64_t first_block_row,
                                         int block_rows, RightHandSides const& of) {
  SellGroup const* group =
      a.group + a.first_group[s] + (first_block_row - a.tiling.first(s)) / group_block_rows;
  bool const is_near = enter<1>(a, s, first_block_row, of);
  for (int block_row = 0; block_row < block_rows; block_row += group_block_rows, ++group) {
    int const lanes = block_rows - block_row < group_block_rows ? block_rows - block_row : group_block_rows;
    if (group->kind == SellGroup::Kind::diagonals) {
      whole_diagonals_of_sides(a, *group, lanes, block_row, of);
    } else {
      other_group_of_sides<b>(a, s, *group, lanes, is_near, block_row, of);
    }
  }
}
#undef HOSTLESS_SIDES_VECTOR
