"""Where candidates are evaluated: here, in processes of this machine, or on a Ray or Dask cluster that is running.

All of them give the results in the order of the tasks, so that nothing depends on where and when a task ran.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar

from schedc.errors import UserError

T = TypeVar("T")
R = TypeVar("R")


class Executor(Protocol):
    """`map(function, tasks)`: the results in the order of the tasks, as they come."""

    def map(self, function: Callable[[T], R], tasks: Sequence[T]) -> Iterable[R]: ...


class _Here:
    def map(self, function: Callable[[T], R], tasks: Sequence[T]) -> Iterable[R]:
        return map(function, tasks)


@contextmanager
def executor(address: str = "local", jobs: int = 1) -> Iterator[Executor]:
    """`local` with `jobs` processes, `dask://host:port` or `ray://host:port` (`ray://local` starts one here).

    Raises UserError for an address that is none, a cluster that does not answer, and a missing package.
    """
    scheme, separator, rest = address.partition("://")
    if address == "local":
        with _local(jobs) as found:
            yield found
    elif scheme == "dask" and separator:
        with _dask(rest) as found:
            yield found
    elif scheme == "ray" and separator:
        with _ray(rest, address) as found:
            yield found
    else:
        raise UserError(f"--executor {address}: must be local, dask://host:port or ray://host:port")


@contextmanager
def _local(jobs: int) -> Iterator[Executor]:
    if jobs <= 1:
        yield _Here()
        return
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import active_children, get_context

    # Spawned, not forked: numba's threads and a forked process do not go together.
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=_leave_interrupts_alone) as pool:
        try:
            yield pool
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for worker in active_children():
                worker.kill()  # It may be compiling the simulation, which it does not leave for a minute.
            raise


def _leave_interrupts_alone() -> None:
    """Ctrl-C is for the process that asks, which then stops the others."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def _dask(place: str) -> Iterator[Executor]:
    try:
        from distributed import Client
    except ImportError:
        raise UserError("--executor dask://… needs the package distributed: pip install 'schedc[dask]'") from None
    try:
        client = Client(f"tcp://{place}", timeout=5)
    except (OSError, TimeoutError, ValueError) as error:
        raise UserError(f"--executor dask://{place}: no Dask scheduler answers there ({error})") from None
    with client:
        yield _Dask(client)


class _Dask:
    def __init__(self, client: Any) -> None:
        self.client = client

    def map(self, function: Callable[[T], R], tasks: Sequence[T]) -> Iterable[R]:
        futures = self.client.map(function, list(tasks), pure=False)
        return (future.result() for future in futures)


@contextmanager
def _ray(place: str, address: str) -> Iterator[Executor]:
    try:
        import ray
    except ImportError:
        raise UserError("--executor ray://… needs the package ray: pip install 'schedc[ray]'") from None
    try:
        ray.init(address=None if place == "local" else address, ignore_reinit_error=True, log_to_driver=False)
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise UserError(f"--executor {address}: no Ray cluster answers there ({error})") from None
    try:
        yield _Ray(ray)
    finally:
        ray.shutdown()


class _Ray:
    def __init__(self, ray: Any) -> None:
        self.ray = ray

    def map(self, function: Callable[[T], R], tasks: Sequence[T]) -> Iterable[R]:
        remote = self.ray.remote(function)
        references = [remote.remote(task) for task in tasks]
        return (self.ray.get(reference) for reference in references)
