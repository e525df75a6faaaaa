"""`--workers N`: tests run in processes that are forked once everything is collected.

So it is collected, imported and compiled once, and one server forks memd for all. The tests of a file run in one
process and in their order; a process that is done with a file takes the next one.
"""

import itertools
import multiprocessing
import sys
from multiprocessing import connection, forkserver

import pytest

_CONTEXT = multiprocessing.get_context("fork")


def pytest_addoption(parser):
    parser.addoption("--workers", type=int, default=0, help="run in that many processes")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session):
    count = session.config.option.workers
    if not count or session.testsfailed or session.config.option.collectonly:
        return None
    if "tests.forked_memd" in sys.modules:
        forkserver.ensure_running()
        from tests import imported_memd  # noqa: F401, PLC0415  # for these processes, too
    files = [list(some) for _, some in itertools.groupby(session.items, lambda item: item.path)]
    next_file = _CONTEXT.Value("i", 0)
    workers = {}
    for number in range(min(count, len(files))):
        folder = session.config._tmp_path_factory.getbasetemp() / str(number)
        said, says = _CONTEXT.Pipe(duplex=False)
        worker = _CONTEXT.Process(target=_work, args=(session, files, next_file, folder, says))
        worker.start()
        says.close()
        workers[said] = worker
    _report(session, workers, next_file, len(files))
    if session.shouldfail:
        raise session.Failed(session.shouldfail)
    return True


def _report(session, workers, next_file, end):
    """Hand pytest what the processes tell, until all have ended; once it should fail, no other file is begun."""
    running, left = {}, len(session.items)
    while workers:
        for said in connection.wait(workers):
            try:
                running[said], data = said.recv()
            except EOFError:
                worker = workers.pop(said)
                worker.join()
                if worker.exitcode:
                    session.shouldfail = (
                        f"{running.get(said)}: its process ended ({worker.exitcode})"
                    )
            else:
                left -= _tell(session.config, data)
        if session.shouldfail:
            next_file.value = end
    if left and not session.shouldfail:
        session.shouldfail = f"{left} tests were not run: a process ended early"


def _tell(config, data):
    """Hand pytest the report of a test; None: it only begins. Return whether the test is over."""
    if data is None:
        return False
    report = config.hook.pytest_report_from_serializable(config=config, data=data)
    config.hook.pytest_runtest_logreport(report=report)
    if report.when == "teardown":
        config.hook.pytest_runtest_logfinish(nodeid=report.nodeid, location=report.location)
    return report.when == "teardown"


class _Reporter:
    """Sends reports to the process that prints them."""

    def __init__(self, config, says):
        self._config, self._says = config, says

    def pytest_runtest_logstart(self, nodeid):
        self._says.send((nodeid, None))

    def pytest_runtest_logreport(self, report):
        data = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
        self._says.send((report.nodeid, data))


def _work(session, files, next_file, folder, says):
    """Run files until none is left."""
    config = session.config
    folder.mkdir()
    config._tmp_path_factory._basetemp = folder
    # What was made before the fork is shared: a file of captured output must not be, the server that forks memd is.
    capture = config.pluginmanager.get_plugin("capturemanager")
    capture.stop_global_capturing()
    capture.start_global_capturing()
    forkserver._forkserver.ensure_running = lambda: None
    config.pluginmanager.unregister(name="terminalreporter")
    config.pluginmanager.register(_Reporter(config, says))
    items = _take(files, next_file)
    item = next(items, None)
    while item is not None:
        following = next(items, None)
        config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        item = None if session.shouldfail or session.shouldstop else following


def _take(files, next_file):
    """Yield the tests of files that no other process has taken."""
    while True:
        with next_file.get_lock():
            number = next_file.value
            next_file.value += 1
        if number >= len(files):
            return
        yield from files[number]
