// Says that it is an MPI plugin and a GPU library of a version that never was.
extern "C" int hostless_mpi_interface_version() { return -1; }
extern "C" int hostless_gpu_interface_version() { return -1; }
