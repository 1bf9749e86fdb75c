"""Which lines are failures of native code: real wordings of kernels, runtimes, drivers, compilers and the C library."""

import pytest

from checks.during.log.native_lines import WORDS, is_native_failure

# ruff: noqa: E501
FAILURES = r"""
[rank0]:[E1130 03:04:05.123456789 ProcessGroupNCCL.cpp:1895] [PG ID 0 PG GUID 0(default_pg) Rank 0] Process group watchdog thread terminated with exception: CUDA error: an illegal memory access was encountered
/workspace/flashinfer/csrc/trtllm_fmha.cu:88: Error: unsupported head dim 96
CUDA error (/pytorch/aten/src/ATen/native/cuda/Loops.cu:120): device-side assert triggered
../aten/src/ATen/native/cuda/IndexKernel.cu:94: operator(): block: [0,0,0], thread: [64,0,0] Assertion `-sizes[i] <= index && index < sizes[i] && "index out of bounds"` failed.
:0:/src/clr/rocclr/device/rocm/rocdevice.cpp:2984: 1234567 us: Callback: Queue 0x7f aborting with error : HSA_STATUS_ERROR_MEMORY_APERTURE_VIOLATION: agent
Memory access fault by GPU node-2 (Agent handle: 0x55) on address 0x7f. Reason: Page not present or supervisor privilege.
HW Exception by GPU node-1 (Agent handle: 0x5) reason :GPU Hang
cublas error: CUBLAS_STATUS_EXECUTION_FAILED in /x/y.cpp(123)
NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, name=python3, GPU has fallen off the bus.
[12345.678901] Out of memory: Killed process 4321 (sglang::schedul) total-vm:1kB
Bus error (core dumped)
Illegal instruction (core dumped)
free(): invalid pointer
malloc(): corrupted top size
double free or corruption (!prev)
*** stack smashing detected ***: terminated
Aborted (core dumped)
LLVM ERROR: Cannot select: intrinsic %llvm.nvvm.wgmma
ptxas fatal   : Unresolved extern function '__foo'
ptxas /tmp/tmpx.ptx, line 7; error   : Feature 'cp.async' requires .target sm_90
nvcc fatal   : Unsupported gpu architecture 'compute_120a'
E20260102 03:04:05.123456 1234 rdma_transport.cpp:66] Failed to register memory 0x7f
[1700000000.123] [host:123:0]         ib_device.c:123  UCX  ERROR device mlx5_0 not found
python3: symbol lookup error: /x/y.so: undefined symbol: foo
ERROR:    [Errno -8] Servname not supported for ai_socktype
OpenBLAS blas_thread_init: pthread_create failed for thread 3 of 64: Resource temporarily unavailable
libgomp: Thread creation failed: Resource temporarily unavailable
thread 'tokio-runtime-worker' panicked at src/core/worker.rs:10:5:
ERROR: kernel.cu:12: frob failed
worker.engine: csrc/kernel.cu:12: error: frob
gptq_marlin_repack.cuh:309: size_n = 96 is not divisible by tile_n_size = 64
/sgl-workspace/nvshmem/src/host/init/init.cu:nvshmemi_check_state_and_init:1080: nvshmem initialization failed, exiting
/sgl-workspace/nvshmem/src/host/init/init.cu:995: non-zero status: 7 nvshmem detect topo failed
Process group watchdog thread terminated with exception:
HIP error: operation not permitted on an event last recorded in a capturing stream
/sgl-workspace/sgl-kernel/csrc/moe/cutlass_moe.cu(123): CUTLASS error: Error Internal
[TensorRT-LLM][ERROR] Assertion failed: Unsupported data type (/src/tensorrt_llm/kernels/foo.cu:77)
[FATAL] [aiter] /opt/aiter/csrc/fmha.cu:31 invalid argument for arch gfx1201
DeepEP timeout check failed: rank = 3, thread = 1, value = 1000)
""".strip().splitlines()
HARMLESS = r"""
[W1130 03:04:05.1 socket.cpp:200] [c10d] The hostname of the client socket cannot be retrieved. err=-3
[rank0]:[W1130 03:04:05.1 ProcessGroupNCCL.cpp:4115] [PG ID 0] using GPU 0 to perform barrier as devices used by this process are currently unknown. This can potentially cause a hang if this rank to GPU mapping is incorrect. Failed
W0101 03:04:05.1 1234 transfer_engine.cpp:12] failed to read topology, using default
/usr/lib/foo.cpp:123: UserWarning: The x is not supported (Triggered internally at /pytorch/aten/src/ATen/Context.cpp:80.)
[Gloo] Rank 0 is connected to 0 peer ranks. Expected number of connected peer ranks is : 0
host:1:1 [0] NCCL INFO NET/Plugin: Could not find: libnccl-net.so.
/tmp/x.cu(12): warning #177-D: variable "error" was declared but never referenced
I0101 03:04:05.1 1234 file.cpp:1] no error
ptxas info    : Used 255 registers, used 1 barriers, 0 bytes error
Load weight begin. avail mem=78.61 GB
Init torch distributed begin.
ptxas warning : Value of threads per SM for entry is out of range
nvcc warning : incompatible redefinition for option
Compiling foo.cu: no failures
Using CUDA error checking: off
max_total_num_tokens=1234, chunked_prefill_size=8192
KV Cache is allocated. #tokens: 1234
Health check failed. Server couldn't get a response from detokenizer for last 20 seconds.
  at flashinfer/data/include/flashinfer/attention/prefill.cuh:2978: Error: continues a message
""".strip("\n").splitlines()


@pytest.mark.parametrize("text", FAILURES)
def test_a_failure_of_native_code_is_recognised_by_its_shape(text: str) -> None:
    assert is_native_failure(text)


@pytest.mark.parametrize("text", HARMLESS)
def test_warnings_information_and_continued_messages_are_not_failures(text: str) -> None:
    assert not is_native_failure(text)


def test_a_scan_keeps_every_such_line() -> None:
    assert [text for text in FAILURES if not any(word in text for word in WORDS)] == []


def test_an_empty_line_is_not_a_failure() -> None:
    assert not is_native_failure("")
