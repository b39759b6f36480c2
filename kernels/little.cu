// Bytes in flight: what memory gives is what is on the way to it, divided by how long the way is.
//
//   read   UNROLL loads of 4 bytes per thread before the first use    1 KiB in flight per block of 256 and load
//   chase  each load says where the next one goes                     4 bytes in flight: the latency, and nothing else
//
// The grid of read is as many blocks an SM as wanted; they walk the array together. The seminar counts its
// escalator the same way: 0.5 persons a second x 40 s = 20 persons on it.

// x holds trips * gridDim.x * UNROLL * BLOCK values; sums wrap around, so that their order does not matter.
extern "C" __global__ void read(const unsigned* __restrict__ x, unsigned* sums, int trips)
{
    int tid = threadIdx.x;
    unsigned sum = 0;

#pragma unroll 1  // or the compiler would put loads of several trips in flight
    for (int trip = 0; trip < trips; trip++) {
        int first = (trip * gridDim.x + blockIdx.x) * UNROLL * BLOCK + tid;
        unsigned v[UNROLL];

#pragma unroll
        for (int k = 0; k < UNROLL; k++)
            v[k] = x[first + k * BLOCK];

#pragma unroll
        for (int k = 0; k < UNROLL; k++)
            sum += v[k];
    }

    sums[blockIdx.x * BLOCK + tid] = sum;
}

// One thread, `steps` loads from `start` on; the last index is the result.
extern "C" __global__ void chase(const unsigned* __restrict__ next, unsigned* end, unsigned start, int steps)
{
    unsigned at = start;

    for (int step = 0; step < steps; step++)
        at = next[at];

    *end = at;
}
