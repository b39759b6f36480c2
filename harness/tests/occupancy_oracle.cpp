// NVIDIA's own calculator behind one C function, for ctypes: see test_occupancy.py.

#include "cuda_occupancy.h"

struct Case {
    int major, minor, threads_per_sm, shared_per_sm, shared_per_block, reserved;
    int threads, registers, static_shared, dynamic_shared;
};

extern "C" int resident_blocks(const Case* c, int* limits)
{
    cudaOccDeviceProp device;
    device.computeMajor = c->major;
    device.computeMinor = c->minor;
    device.maxThreadsPerBlock = 1024;
    device.maxThreadsPerMultiprocessor = c->threads_per_sm;
    device.regsPerBlock = device.regsPerMultiprocessor = 65536;
    device.warpSize = 32;
    device.sharedMemPerBlock = 48 * 1024;
    device.sharedMemPerMultiprocessor = c->shared_per_sm;
    device.sharedMemPerBlockOptin = c->shared_per_block;
    device.reservedSharedMemPerBlock = c->reserved;
    device.numSms = 1;

    cudaOccFuncAttributes kernel;
    kernel.maxThreadsPerBlock = 1024;
    kernel.numRegs = c->registers;
    kernel.sharedSizeBytes = c->static_shared;
    kernel.maxDynamicSharedSizeBytes = c->dynamic_shared;
    kernel.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
    kernel.numBlockBarriers = 1;

    cudaOccDeviceState state;
    cudaOccResult result;
    if (cudaOccMaxActiveBlocksPerMultiprocessor(
            &result, &device, &kernel, &state, c->threads, c->dynamic_shared) != CUDA_OCC_SUCCESS)
        return -1;
    limits[0] = result.blockLimitWarps;
    limits[1] = result.blockLimitBlocks;
    limits[2] = result.blockLimitRegs;
    limits[3] = result.blockLimitSharedMem;
    return result.activeBlocksPerMultiprocessor;
}
