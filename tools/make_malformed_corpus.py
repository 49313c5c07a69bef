#!/usr/bin/env python3
"""Writes the corpus of malformed files, tests/data/malformed, and its table `expected.tsv`.

Columns of the table: file, kind (matrix, or vector:N for a vector of N entries), line that the message must name (0: a
binary file, which has no lines), and a phrase that the message must hold. The files are committed, so that the tests need
no Python; run this after a change, from anywhere.
"""

import gzip
import io
import pathlib
import struct
import zipfile

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "tests" / "data" / "malformed"
HEAD = b"%%MatrixMarket matrix coordinate real symmetric\n"
GENERAL = HEAD.replace(b"symmetric", b"general")
GOOD = HEAD + b"3 3 4\n1 1 4\n2 1 -1\n2 2 4\n3 3 4\n"
VECTOR = b"%%MatrixMarket matrix array real general\n"


def zipped(text: bytes) -> bytes:
    return gzip.compress(text, mtime=0)


def petsc(*words: int, values=()) -> bytes:
    return struct.pack(f">{len(words)}i", *words) + struct.pack(f">{len(values)}d", *values)


def npy(description: str, values=(), version=(1, 0), length=None) -> bytes:
    text = description.encode()
    form = "<H" if version[0] == 1 else "<I"
    size = struct.pack(form, len(text) if length is None else length)
    return b"\x93NUMPY" + bytes(version) + size + text + struct.pack(f"<{len(values)}d", *values)


def array(kind: str, shape, content: bytes, fortran=False) -> bytes:
    """A .npy of any type."""
    text = f"{{'descr': '{kind}', 'fortran_order': {fortran}, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + content


def numbers(kind: str, *values) -> bytes:
    """A .npy of one index: 'i4' or 'f8'."""
    return array("<" + kind, (len(values),), struct.pack(f"<{len(values)}{ {'i4': 'i', 'i8': 'q', 'f8': 'd'}[kind] }", *values))


def npz(packed=zipfile.ZIP_STORED, **changed) -> bytes:
    """What scipy.sparse.save_npz writes of [[4, -1], [-1, 4]] as csr, with other members."""
    members = {"indices": numbers("i4", 0, 1, 0, 1), "indptr": numbers("i4", 0, 2, 4), "format": array("|S3", (), b"csr"),
               "shape": numbers("i8", 2, 2), "data": numbers("f8", 4, -1, -1, 4), **changed}
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", packed) as archive:
        for name, content in members.items():
            if content is not None:
                info = zipfile.ZipInfo(name + ".npy", (1980, 1, 1, 0, 0, 0))
                info.compress_type = packed
                archive.writestr(info, content)
    return file.getvalue()


def flipped(content: bytes, place: int, by: int = 1) -> bytes:
    return content[:place] + bytes([content[place] ^ by]) + content[place + 1:]


def wide(*words: int, values=()) -> bytes:
    """PETSc binary of 64-bit integers."""
    return struct.pack(f">{len(words)}q", *words) + struct.pack(f">{len(values)}d", *values)


def line(text: bytes) -> bytes:
    """The good matrix with line 4, `2 1 -1`, replaced."""
    return GOOD.replace(b"2 1 -1\n", text + b"\n")


MATRICES = [
    # The banner.
    ("empty", b"", 1, "ends before its line of sizes"),
    ("only_newlines", b"\n\n\n", 1, "begins with"),
    ("no_banner", b"3 3 1\n1 1 4\n", 1, "begins with"),
    ("banner_one_percent", GOOD[1:], 1, "begins with"),
    ("banner_misspelt", GOOD.replace(b"MatrixMarket", b"MatrixMarkt"), 1, "begins with"),
    ("banner_word_missing", GOOD.replace(b" symmetric", b""), 1, "unknown or missing word"),
    ("banner_word_unknown", GOOD.replace(b"real", b"quaternion"), 1, "unknown or missing word"),
    ("banner_word_extra", GOOD.replace(b"symmetric", b"symmetric positive"), 1, "follows the last number"),
    ("mark_only", b"\xef\xbb\xbf", 1, "ends before its line of sizes"),
    ("mark_twice", b"\xef\xbb\xbf" * 2 + GOOD, 1, "begins with"),
    ("banner_only", HEAD, 2, "ends before its line of sizes"),
    ("banner_cut", HEAD[:30], 1, "unknown or missing word"),
    ("object_vector", GOOD.replace(b"matrix", b"vector"), 1, "`vector`"),
    ("field_complex", GOOD.replace(b"real", b"complex"), 1, "complex"),
    ("field_unsigned", GOOD.replace(b"real", b"unsigned-integer"), 1, "unsigned-integer"),
    ("skew_symmetric", GOOD.replace(b"symmetric", b"skew-symmetric"), 1, "skew-symmetric"),
    ("hermitian", GOOD.replace(b"symmetric", b"hermitian"), 1, "hermitian"),
    ("array_for_matrix", VECTOR + b"2 2\n1\n0\n0\n1\n", 2, "array"),
    ("array_symmetric", VECTOR.replace(b"general", b"symmetric") + b"2 2\n1\n0\n1\n", 2, "the matrix is an array"),
    ("long_banner", b"%%MatrixMarket " + b"x" * 40000, 1, "more than 32768"),
    ("nul_banner", b"%%MatrixMarket\0matrix coordinate real symmetric\n1 1 1\n1 1 1\n", 1, "begins with"),
    ("binary_rubbish", bytes((7 * k * k + 13 * k) % 251 for k in range(700)), 1, "begins with"),
    ("picture", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", 1, "begins with"),
    ("utf16", GOOD.decode().encode("utf-16"), 1, "begins with"),
    # The line of sizes.
    ("comments_only", HEAD + b"% a\n% b\n", 4, "ends before its line of sizes"),
    ("sizes_two_numbers", GOOD.replace(b"3 3 4", b"3 3"), 2, "number of entries is missing"),
    ("sizes_four_numbers", GOOD.replace(b"3 3 4", b"3 3 4 4"), 2, "follows the last number"),
    ("sizes_text", GOOD.replace(b"3 3 4", b"three 3 4"), 2, "is not a number of rows"),
    ("sizes_fraction", GOOD.replace(b"3 3 4", b"3.0 3 4"), 2, "is not a number of rows"),
    ("sizes_exponent", GOOD.replace(b"3 3 4", b"3 3 4e0"), 2, "is not a number of entries"),
    ("sizes_zero", GOOD.replace(b"3 3 4", b"0 0 0"), 2, "nothing can be solved"),
    ("sizes_negative", GOOD.replace(b"3 3 4", b"-3 -3 4"), 2, "nothing can be solved"),
    ("sizes_negative_entries", GOOD.replace(b"3 3 4", b"3 3 -4"), 2, "nothing can be solved"),
    ("not_square", GOOD.replace(b"3 3 4", b"3 4 4"), 2, "must be square"),
    ("huge_rows", GOOD.replace(b"3 3 4", b"1000000000000 1000000000000 4"), 2, "with only 4 entries"),
    ("huge_entries", GOOD.replace(b"3 3 4", b"3 3 1000000000000"), 2, "entries in"),
    ("huge_both", GOOD.replace(b"3 3 4", b"4000000000 4000000000 4000000000"), 2, "entries in"),
    ("max_entries", GOOD.replace(b"3 3 4", b"3 3 9223372036854775807"), 2, "entries in"),
    ("max_rows", GOOD.replace(b"3 3 4", b"9223372036854775807 9223372036854775807 4"), 2, "with only 4 entries"),
    ("beyond_64_bits", GOOD.replace(b"3 3 4", b"99999999999999999999 3 4"), 2, "64 bits"),
    ("sizes_after_comment", GOOD.replace(b"3 3 4", b"% x\n\n% y\n3 x 4"), 5, "is not a number of columns"),
    # Indices.
    ("row_zero", line(b"0 1 -1"), 4, "row index 0 is outside"),
    ("row_beyond", line(b"4 1 -1"), 4, "row index 4 is outside"),
    ("column_zero", line(b"2 0 -1"), 4, "column index 0 is outside"),
    ("column_beyond", line(b"2 4 -1"), 4, "column index 4 is outside"),
    ("row_negative", line(b"-2 1 -1"), 4, "row index -2 is outside"),
    ("row_plus", line(b"+2 1 -1"), 4, "is not a row index"),
    ("row_fraction", line(b"1.5 1 -1"), 4, "\"1.5\" is not a row index"),
    ("row_hexadecimal", line(b"0x2 1 -1"), 4, "is not a row index"),
    ("row_text", line(b"two 1 -1"), 4, "\"two\" is not a row index"),
    ("row_beyond_64_bits", line(b"18446744073709551618 1 -1"), 4, "64 bits"),
    ("column_text", line(b"2 one -1"), 4, "is not a column index"),
    ("commas", line(b"2,1,-1"), 4, "is not a row index"),
    ("fortran_offsets", GOOD.replace(b"1 1 4\n", b"0 0 4\n"), 3, "row index 0 is outside"),
    # Values.
    ("value_missing", line(b"2 1"), 4, "value is missing"),
    ("value_text", line(b"2 1 minus"), 4, "is not a number"),
    ("value_nan", line(b"2 1 nan"), 4, "not finite"),
    ("value_minus_nan", line(b"2 1 -NaN"), 4, "not finite"),
    ("value_infinity", line(b"2 1 inf"), 4, "not finite"),
    ("value_minus_infinity", line(b"2 1 -Infinity"), 4, "not finite"),
    ("value_overflow", line(b"2 1 1e400"), 4, "not finite"),
    ("value_underflow", line(b"2 1 -1e-400"), 4, "the value -1e-400 is not 0"),
    ("value_underflow_fortran", line(b"2 1 0.001D-400"), 4, "would be read as 0"),
    ("value_hexadecimal", line(b"2 1 0x10"), 4, "is not a number"),
    ("value_fortran_exponent", line(b"2 1 1.0D+"), 4, "is not a number"),
    ("value_fortran_twice", line(b"2 1 1.0D+0D1"), 4, "is not a number"),
    ("value_quadruple_exponent", line(b"2 1 1.0Q+00"), 4, "is not a number"),
    ("value_no_exponent", line(b"2 1 1e"), 4, "is not a number"),
    ("value_two_signs", line(b"2 1 +-1"), 4, "is not a number"),
    ("value_only_sign", line(b"2 1 -"), 4, "is not a number"),
    ("value_decimal_comma", line(b"2 1 1,5"), 4, "is not a number"),
    ("value_complex", line(b"2 1 -1 0"), 4, "follows the last number"),
    ("garbage_behind", line(b"2 1 -1 x"), 4, "follows the last number"),
    ("comment_behind", line(b"2 1 -1 % x"), 4, "follows the last number"),
    ("nul_in_line", line(b"2 1 -1\0"), 4, "is not a number"),
    ("nul_for_blank", line(b"2\0001 -1"), 4, "is not a row index"),
    ("control_characters", line(b"2 1 \x01\x02"), 4, "is not a number"),
    ("high_bytes", line(b"2 1 \xff\xfe"), 4, "is not a number"),
    ("comment_among_entries", line(b"% x\n2 1 -1"), 4, "comment among"),
    ("line_too_long", line(b"2 1 -1" + b" " * 5000), 4, "4096"),
    ("long_line_of_digits", line(b"2 1 " + b"1" * 5000), 4, "4096"),
    ("carriage_returns_only", GOOD.replace(b"\n", b"\r"), 1, "carriage return alone"),
    ("crlf_bad_value", line(b"2 1 y").replace(b"\n", b"\r\n"), 4, "\"y\" is not a number"),
    ("crlf_row_zero", line(b"0 1 1").replace(b"\n", b"\r\n"), 4, "row index 0"),
    ("cr_inside_line", line(b"2 1\r-1"), 4, "is not a column index"),
    ("pattern_with_value", GOOD.replace(b"real", b"pattern"), 3, "follows the last number"),
    ("integer_fraction", GOOD.replace(b"real", b"integer").replace(b"-1", b"-1.5"), 4, "is not an integer value"),
    ("integer_beyond_double", GOOD.replace(b"real", b"integer").replace(b"-1", b"9007199254740993"), 4, "2^53"),
    # Counts.
    ("too_few", GOOD[: GOOD.rfind(b"3 3 4")], 6, "after 3 of 4"),
    ("cut_in_a_number", GOOD[:-3], 6, "value is missing"),
    ("cut_in_an_index", GOOD[:-5], 6, "column index is missing"),
    ("too_many", GOOD + b"3 2 1\n3 1 1\n", 7, "one more than the 4"),
    ("too_many_blank_between", GOOD + b"\n\n3 2 1\n", 9, "one more than the 4"),
    ("no_entries", HEAD + b"3 3 2\n" + b" \n" * 10, 13, "after 0 of 2"),
    ("text_behind", GOOD + b"end\n", 7, "is not a row index"),
    # Symmetry and duplicates.
    ("duplicate", GOOD.replace(b"3 3 4\n1", b"3 3 5\n1") + b"2 2 4\n", 7, "entry (2, 2)"),
    ("duplicate_off_diagonal", GOOD.replace(b"3 3 4\n1", b"3 3 5\n1") + b"2 1 -1\n", 7, "second time"),
    ("both_triangles", GOOD.replace(b"3 3 4\n1", b"3 3 5\n1") + b"1 2 -1\n", 7, "second time"),
    ("duplicate_general", GENERAL + b"2 2 3\n1 1 4\n2 2 4\n1 1 4\n", 5, "second time"),
    ("triangle_called_general", GENERAL + b"2 2 3\n1 1 4\n2 1 -1\n2 2 4\n", 4, "is missing"),
    ("values_not_symmetric", GENERAL + b"2 2 4\n1 1 4\n1 2 -1\n2 1 -2\n2 2 4\n", 4, "entry (1, 2) is -1 but (2, 1) is -2"),
    ("more_than_rounding", GENERAL + b"2 2 2\n1 2 0.1\n2 1 0.100000001\n", 3, "entry (1, 2)"),
    # gz.
    ("cut_short.gz", zipped(GOOD)[:-12], 5, "cut short"),
    ("cut_checksum.gz", zipped(GOOD)[:-4], 7, "cut short"),
    ("cut_to_magic.gz", zipped(GOOD)[:2], 1, "cut short"),
    ("damaged_checksum.gz", zipped(GOOD)[:-8] + b"\0\0\0\0" + zipped(GOOD)[-4:], 7, "damaged"),
    ("damaged_head.gz", b"\x1f\x8b" + b"\xff" * 30, 1, "damaged"),
    ("rubbish_behind.gz", zipped(GOOD) + b"rubbish behind it", 7, "damaged"),
    ("bad_line.gz", zipped(line(b"2 1 x")), 4, "is not a number"),
    ("twice_gz.gz", zipped(zipped(GOOD)), 1, "begins with"),
    ("huge_rows.gz", zipped(GOOD.replace(b"3 3 4", b"1000000000 1000000000 4")), 2, "with only 4 entries"),
    ("huge_entries.gz", zipped(GOOD.replace(b"3 3 4", b"3000000 3000000 3000000") + b"\n" * 200000), 2, "entries in"),
    # PETSc binary.
    ("petsc_vector_for_matrix", petsc(1211214, 2, values=(1, 1)), 0, "class id is 1211214"),
    ("petsc_index_set", petsc(1211218, 2, 0, 1), 0, "class id is 1211218"),
    ("petsc_id_only", petsc(1211216), 0, "inside its header"),
    ("petsc_header_cut", petsc(1211216, 2, 2), 0, "inside its header"),
    ("petsc_not_square", petsc(1211216, 2, 3, 2, 1, 1, 0, 1, values=(1, 1)), 0, "must be square"),
    ("petsc_no_rows", petsc(1211216, 0, 0, 0), 0, "must be square"),
    ("petsc_dense", petsc(1211216, 2, 2, -1, values=(1, 0, 0, 1)), 0, "-1 entries"),
    ("petsc_huge", petsc(1211216, 2147483647, 2147483647, 2147483647), 0, "take"),
    ("petsc_cut", petsc(1211216, 2, 2, 2, 1, 1, 0, 1, values=(1, 1))[:-3], 0, "cut short"),
    ("petsc_complex", petsc(1211216, 2, 2, 2, 1, 1, 0, 1, values=(1, 0, 1, 0)), 0, "complex"),
    ("petsc_complex_followed", petsc(1211216, 2, 2, 2, 1, 1, 0, 1, values=(1, 0, 1, 0)) + petsc(1211214, 1, values=(1, 0)),
     0, "complex"),
    ("petsc_single_nan", petsc(1211216, 2, 2, 2, 1, 1, 0, 1) + struct.pack(">2f", 1, float("nan")), 0, "row 2, column 2"),
    ("petsc_wide_header_cut", wide(1211216, 2, 2), 0, "inside its header"),
    ("petsc_wide_huge", wide(1211216, 2**62, 2**62, 2**62, 1, 0, values=(1,)), 0, "cut short"),
    ("petsc_wide_entries_huge", wide(1211216, 2, 2, 2**61 - 3, 1, 1, 0, 1, values=(1, 1)), 0, "cut short"),
    ("petsc_wide_column", wide(1211216, 2, 2, 2, 1, 1, 0, 2**32, values=(1, 1)), 0, "column index 4294967296"),
    ("petsc_wide_cut", wide(1211216, 2, 2, 2, 1, 1, 0, 1, values=(1,))[:-1], 0, "cut short"),
    ("petsc_length_negative", petsc(1211216, 2, 2, 2, -1, 3, 0, 1, values=(1, 1)), 0, "row 1 has -1"),
    ("petsc_length_huge", petsc(1211216, 2, 2, 2, 1, 2000000000, 0, 1, values=(1, 1)), 0, "row 2 has"),
    ("petsc_lengths_disagree", petsc(1211216, 2, 2, 2, 1, 2, 0, 1, values=(1, 1)), 0, "must agree"),
    ("petsc_column_beyond", petsc(1211216, 2, 2, 2, 1, 1, 0, 2, values=(1, 1)), 0, "column index 2"),
    ("petsc_column_negative", petsc(1211216, 2, 2, 2, 1, 1, -1, 1, values=(1, 1)), 0, "column index -1"),
    ("petsc_nan", petsc(1211216, 2, 2, 2, 1, 1, 0, 1, values=(1, float("nan"))), 0, "row 2, column 2"),
    ("petsc_duplicate", petsc(1211216, 2, 2, 3, 1, 2, 0, 1, 1, values=(1, 1, 1)), 0, "column 2 twice"),
    ("petsc_not_symmetric", petsc(1211216, 2, 2, 3, 2, 1, 0, 1, 1, values=(1, 5, 1)), 0, "(2, 1) is missing"),
    # Archives of NumPy.
    ("npz_empty", npz()[:4], 0, "no directory"),
    ("npz_cut", npz()[:-30], 0, "no directory"),
    ("npz_cut_in_front", npz()[100:], 1, "begins with"),
    ("npz_end_record_only", b"PK\x05\x06" + bytes(18), 0, "has no format.npy"),
    ("npz_directory_outside", npz()[:-6] + struct.pack("<I", 2**31) + bytes(2), 0, "outside the file"),
    ("npz_many_members", npz()[:-12] + struct.pack("<H", 5000) + npz()[-10:], 0, "5000 members"),
    ("npz_wide_record_missing", npz()[:-6] + b"\xff\xff\xff\xff" + bytes(2), 0, "ZIP64"),
    ("npz_encrypted", npz()[:npz().find(b"PK\x01\x02") + 8] + b"\x01" + npz()[npz().find(b"PK\x01\x02") + 9:], 0, "encrypted"),
    ("npz_other_method", npz(zipfile.ZIP_BZIP2), 0, "method 12"),
    ("npz_damaged", flipped(npz(), npz().find(struct.pack("<d", 4)), 1), 0, "checksum is wrong"),
    ("npz_damaged_packed", flipped(npz(zipfile.ZIP_DEFLATED), 60, 255), 0, "indices.npy"),
    ("npz_member_moved", flipped(npz(), npz().find(b"PK\x01\x02") + 42, 4), 0, "not where its directory says"),
    ("npz_claims_more", flipped(npz(), npz().find(b"PK\x01\x02") + 26, 64), 0, "another length"),
    ("npz_of_vectors", npz(format=None, shape=None, indptr=None, indices=None), 0, "has no format.npy but data.npy"),
    ("npz_format_unknown", npz(format=array("|S3", (), b"lil")), 0, 'format is "lil"'),
    ("npz_format_of_numbers", npz(format=numbers("f8", 1)), 0, "has 1 indices where 0"),
    ("npz_not_square", npz(shape=numbers("i8", 2, 3)), 0, "must be square"),
    ("npz_three_extents", npz(shape=numbers("i8", 2, 2, 2)), 0, "3 extents"),
    ("npz_huge_rows", npz(shape=numbers("i8", 2**62, 2**62)), 0, "with only 4 entries"),
    ("npz_no_data", npz(data=None), 0, "has no data.npy"),
    ("npz_complex", npz(data=array("<c16", (4,), bytes(64))), 0, "complex"),
    ("npz_indices_real", npz(indices=numbers("f8", 0, 1, 0, 1)), 0, "no whole numbers"),
    ("npz_indices_fewer", npz(indices=numbers("i4", 0, 1, 0)), 0, "must agree"),
    ("npz_offsets_fewer", npz(indptr=numbers("i4", 0, 4)), 0, "has 2 entries where 3"),
    ("npz_offsets_fall", npz(indptr=numbers("i4", 0, 4, 2)), 0, "offsets rise"),
    ("npz_offsets_negative", npz(indptr=numbers("i4", -4, 2, 4)), 0, "offsets rise"),
    ("npz_offsets_beyond", npz(indptr=numbers("i8", 0, 2, 2**62)), 0, "offsets rise"),
    ("npz_column_beyond", npz(indices=numbers("i4", 0, 1, 0, 2)), 0, "column index 2"),
    ("npz_column_negative", npz(indices=numbers("i4", 0, 1, -1, 1)), 0, "column index -1"),
    ("npz_column_twice", npz(indices=numbers("i4", 0, 0, 0, 1)), 0, "row 1 has column 1 twice"),
    ("npz_not_symmetric", npz(data=numbers("f8", 4, -1, -2, 4)), 0, "entry (1, 2) is -1 but (2, 1) is -2"),
    ("npz_nan", npz(data=numbers("f8", 4, -1, -1, float("nan"))), 0, "row 2, column 2"),
    ("npz_integer_beyond_double", npz(data=numbers("i8", 4, -1, -1, 2**53 + 1)), 0, "2^53"),
    ("npz_data_short", npz(data=numbers("f8", 4, -1, -1, 4)[:-1]), 0, "31 bytes of data"),
    ("npz_coo_row_beyond", npz(format=array("|S3", (), b"coo"), row=numbers("i4", 0, 0, 1, 2), col=numbers("i4", 0, 1, 0, 1)),
     0, "row index 2"),
    ("npz_coo_fewer", npz(format=array("|S3", (), b"coo"), row=numbers("i4", 0, 0, 1), col=numbers("i4", 0, 1, 0, 1)),
     0, "must agree"),
    ("npz_bsr_blocks", npz(format=array("|S3", (), b"bsr"), data=array("<f8", (1, 1, 3), struct.pack("<3d", 1, 2, 3)),
                           indices=numbers("i4", 0)), 0, "blocks of 1 by 3 in 2 rows"),
    ("npz_bsr_block_empty", npz(format=array("|S3", (), b"bsr"), data=array("<f8", (1, 0, 1), b""),
                                indices=numbers("i4", 0)), 0, "blocks of 0 by 1"),
    ("npz_dia_fewer", npz(format=array("|S3", (), b"dia"), offsets=numbers("i4", 0), data=array("<f8", (2, 2), bytes(32))),
     0, "must agree"),
    ("npz_dia_fortran", npz(format=array("|S3", (), b"dia"), offsets=numbers("i4", 0, 1),
                            data=array("<f8", (2, 2), bytes(32), True)), 0, "Fortran order"),
    ("npy_for_matrix", npy("{'descr': '<f8', 'fortran_order': False, 'shape': (1,), }\n", (1,)), 0, "NumPy"),
]

WHOLE = "{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }\n"
VECTORS = [
    ("vector_too_short", VECTOR + b"3 1\n1\n2\n", 5, "after 2 of 3"),
    ("vector_too_long", VECTOR + b"3 1\n1\n2\n3\n4\n", 6, "one more than the 3"),
    ("vector_other_size", VECTOR + b"4 1\n1\n2\n3\n4\n", 2, "4 rows and 1 columns"),
    ("vector_two_columns", VECTOR + b"3 2\n1\n2\n3\n4\n5\n6\n", 2, "2 columns, and 1 right-hand side"),
    ("vector_coordinate", GENERAL + b"3 1 1\n1 1 1\n", 1, "as coordinates"),
    ("vector_underflow", VECTOR + b"3 1\n1\n2e-400\n3\n", 4, "would be read as 0"),
    ("vector_nan", VECTOR + b"3 1\n1\nnan\n3\n", 4, "not finite"),
    ("vector_two_on_a_line", VECTOR + b"3 1\n1 2\n3\n", 3, "follows the last number"),
    ("vector_complex", VECTOR.replace(b"real", b"complex") + b"3 1\n1 0\n2 0\n3 0\n", 1, "complex"),
    ("vector_pattern", VECTOR.replace(b"real", b"pattern") + b"3 1\n", 1, "array that is pattern"),
    ("vector_huge", VECTOR + b"9223372036854775807 9223372036854775807\n1\n", 2, "needs one column"),
    ("vector_text", VECTOR + b"3 1\n1\ntwo\n3\n", 4, "is not a number"),
    ("vector_comment", VECTOR + b"3 1\n1\n% two\n2\n3\n", 4, "comment among"),
    ("vector_cut.gz", zipped(VECTOR + b"3 1\n1\n2\n3\n")[:-9], 5, "cut short"),
    ("vector_plain_numbers", b"1\n2\n3\n", 1, "begins with"),
    ("npy_cut_in_magic", b"\x93NUMPY\x01", 0, "inside its header"),
    ("npy_header_cut", npy(WHOLE)[:40], 0, "header claims"),
    ("npy_header_huge", npy(WHOLE, (1, 2, 3), (2, 0), 4294967295), 0, "header claims 4294967295"),
    ("npy_version_9", npy(WHOLE, (1, 2, 3), (9, 0)), 0, "version 9.0"),
    ("npy_version_0", npy(WHOLE, (1, 2, 3), (0, 0)), 0, "version 0.0"),
    ("npy_float32_short", npy(WHOLE.replace("<f8", "<f4"), (1,)), 0, "8 bytes of data"),
    ("npy_complex", npy(WHOLE.replace("<f8", "<c16"), (1, 0, 2, 0, 3, 0)), 0, "complex"),
    ("npy_long_double", npy(WHOLE.replace("<f8", "<f16"), (1, 0, 2, 0, 3, 0)), 0, "<f16"),
    ("npy_text", npy(WHOLE.replace("<f8", "|S8"), (1, 2, 3)), 0, "|S8"),
    ("npy_type_without_width", npy(WHOLE.replace("<f8", "<f"), (1, 2, 3)), 0, "of type"),
    ("npy_type_of_3_bytes", npy(WHOLE.replace("<f8", "<i3"), (1,)), 0, "<i3"),
    ("npy_integer_beyond_double", array("<i8", (3,), struct.pack("<3q", 1, -2**53 - 1, 3)), 0, "-9007199254740993 is beyond 2^53"),
    ("npy_natural_beyond_double", array(">u8", (3,), struct.pack(">3Q", 1, 2**64 - 1, 3)), 0, "18446744073709551615 is beyond 2^53"),
    ("npy_half_infinity", array("<f2", (3,), struct.pack("<3H", 0x3c00, 0x7c00, 0)), 0, "entry 2 is inf"),
    ("npy_columns", npy(WHOLE.replace("(3,)", "(3, 2)"), (1, 2, 3, 4, 5, 6)), 0, "one of its 2 columns"),
    ("npy_objects", npy(WHOLE.replace("<f8", "|O"), (1, 2, 3)), 0, "|O"),
    ("npy_structured", npy(WHOLE.replace("'<f8'", "[('x', '<f8')]"), (1, 2, 3)), 0, "not a dictionary"),
    ("npy_other_size", npy(WHOLE.replace("(3,)", "(4,)"), (1, 2, 3, 4)), 0, "4 entries"),
    ("npy_scalar", npy(WHOLE.replace("(3,)", "()"), (1,)), 0, "shape ()"),
    ("npy_row_of_other_size", npy(WHOLE.replace("(3,)", "(1, 4)"), (1, 2, 3, 4)), 0, "4 entries"),
    ("npy_no_entries", npy(WHOLE.replace("(3,)", "(0, 1)")), 0, "0 entries"),
    ("npy_extents_overflow", npy(WHOLE.replace("(3,)", "(4294967296, 4294967296)"), (1, 2, 3)), 0, "asks for more than 9223372036854775807, 8 each"),
    ("npy_cube", npy(WHOLE.replace("(3,)", "(3, 1, 1)"), (1, 2, 3)), 0, "shape (3, 1, 1)"),
    ("npy_shape_without_comma", npy(WHOLE.replace("(3,)", "(3)"), (1, 2, 3)), 0, "not a dictionary"),
    ("npy_shape_negative", npy(WHOLE.replace("(3,)", "(-3,)"), (1, 2, 3)), 0, "not a dictionary"),
    ("npy_shape_beyond_64_bits", npy(WHOLE.replace("(3,)", "(99999999999999999999,)"), (1, 2, 3)), 0, "not a dictionary"),
    ("npy_key_missing", npy("{'descr': '<f8', 'shape': (3,), }\n", (1, 2, 3)), 0, "not a dictionary"),
    ("npy_key_twice", npy(WHOLE.replace("{", "{'shape': (3,), "), (1, 2, 3)), 0, "not a dictionary"),
    ("npy_key_unknown", npy(WHOLE.replace("{", "{'x': 1, "), (1, 2, 3)), 0, "not a dictionary"),
    ("npy_text_behind", npy(WHOLE.replace("}", "} x"), (1, 2, 3)), 0, "not a dictionary"),
    ("npy_unclosed", npy(WHOLE.replace("}", ""), (1, 2, 3)), 0, "not a dictionary"),
    ("npy_data_short", npy(WHOLE, (1, 2, 3))[:-1], 0, "23 bytes of data but its shape (3) asks for 24, 8 each"),
    ("npy_data_long", npy(WHOLE, (1, 2, 3, 4)), 0, "32 bytes of data"),
    ("npy_nan", npy(WHOLE, (1, float("nan"), 3)), 0, "entry 2"),
    ("npy_infinity", npy(WHOLE, (1, 2, float("inf"))), 0, "entry 3"),
    ("petsc_matrix_for_vector", petsc(1211216, 1, 1, 1, 1, 0, values=(1,)), 0, "class id is 1211216"),
    ("petsc_vector_other_size", petsc(1211214, 2, values=(1, 1)), 0, "2 entries"),
    ("petsc_vector_cut", petsc(1211214, 3, values=(1, 2)), 0, "cut short"),
    ("petsc_vector_complex", petsc(1211214, 3, values=(1, 0, 2, 0, 3, 0)), 0, "complex"),
    ("petsc_vector_negative", petsc(1211214, -3, values=(1, 2, 3)), 0, "-3 entries"),
    ("petsc_vector_huge", wide(1211214, 2**62, values=(1, 2, 3)), 0, "cut short"),
    ("petsc_vector_wide_cut", wide(1211214, 3, values=(1, 2)), 0, "cut short"),
    ("npz_for_vector", npz(), 0, "an archive"),
]


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    for old in FOLDER.iterdir():
        old.unlink()
    (FOLDER / ".gitattributes").write_text("* -text\n")  # git must not touch the ends of lines here
    rows = [("matrix", *case) for case in MATRICES] + [("vector:3", *case) for case in VECTORS]
    table = []
    for kind, name, content, number, phrase in rows:
        (FOLDER / name).write_bytes(content)
        table.append(f"{name}\t{kind}\t{number}\t{phrase}\n")
    (FOLDER / "expected.tsv").write_text("".join(table))
    print(f"{len(rows)} files, {sum(len(row[2]) for row in rows)} bytes")


if __name__ == "__main__":
    main()
