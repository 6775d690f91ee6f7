"""Where Spark runs, and how what it wrote gets its name."""

import os
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyspark.sql import SparkSession

from hushbid.errors import InputError


def session(master: str | None = None) -> SparkSession:
    """The session that is running or that spark-submit describes; if there is none, a new one at a master URL."""
    found = SparkSession.getActiveSession()
    if found is not None:
        return found
    builder: Any = SparkSession.builder.appName("hushbid")
    if master is None and "PYSPARK_GATEWAY_PORT" not in os.environ:
        raise InputError("Engine 'spark' needs a running session, spark-submit, or a master URL such as local[4].")
    if master is not None:
        builder = builder.master(master)
        if master.startswith("local"):  # all of it on this machine: not to be reached from elsewhere
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
            builder = builder.config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1")
            builder = builder.config("spark.ui.enabled", "false").config("spark.log.level", "ERROR")
    new: SparkSession = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
    return new


@contextmanager
def moved(url: str, *, force: bool) -> Iterator[str]:
    """A temporary place beside an address; what is there in the end is moved to the address, else removed.

    In one step on HDFS; an object store copies, so there Spark's own writer and a look at ``_SUCCESS`` are better.
    """
    if not force:
        refuse_existing(url)
    hadoop, system = _file_system(url)
    target = hadoop(url)
    folder, _, name = url.rstrip("/").rpartition("/")
    place = f"{folder}/.{name}.{uuid.uuid4().hex}"
    temporary, old = hadoop(f"{place}.tmp"), hadoop(f"{place}.old")
    try:
        yield f"{place}.tmp"
        # the old one aside, the new one in its place, and back if that fails
        is_replaced = system.exists(target)
        if is_replaced and not (force and system.rename(target, old)):
            raise InputError(f"{url} exists already and cannot be replaced.")
        if not system.rename(temporary, target):
            if is_replaced:
                system.rename(old, target)
            raise InputError(f"{url} cannot be written: the file system refused to rename.")
        system.delete(old, True)
    finally:
        system.delete(temporary, True)


def refuse_existing(url: str) -> None:
    """Say if there is something at an address."""
    hadoop, system = _file_system(url)
    if system.exists(hadoop(url)):
        raise InputError(f"{url} exists already: --force replaces.")


def _file_system(url: str) -> tuple[Any, Any]:
    """How paths are made, and where an address is."""
    running: Any = session()
    hadoop = running._jvm.org.apache.hadoop.fs.Path
    return hadoop, hadoop(url).getFileSystem(running._jsc.hadoopConfiguration())
