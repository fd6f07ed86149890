from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from console.gateway.limits import Limits
from console.gateway.spool import Spool

SMALL = Limits(segment_kib=1)


def fill(spool: Spool, count: int, size: int = 100) -> None:
    for n in range(count):
        spool.append({"id": n, "pad": "x" * size})


def test_numbers_go_on_over_restarts(tmp_path: Path) -> None:
    spool = Spool(tmp_path, SMALL)
    first = spool.seq
    fill(spool, 30)
    spool.close()
    spool = Spool(tmp_path, SMALL)
    assert spool.seq == first + 30
    fill(spool, 1)
    seqs = [seq for seq, _, _ in spool.unsent(1000)]
    assert seqs == list(range(first + 1, first + 32))
    spool.close()


@pytest.mark.parametrize("torn", [b"{", b'{"id": 3, "seq": 99999999999999999999', b"\0\0\0"])
def test_a_torn_last_line_is_dropped(tmp_path: Path, torn: bytes) -> None:
    spool = Spool(tmp_path, SMALL)
    fill(spool, 3)
    last = spool.seq
    newest = spool.segments()[-1]
    spool.close()
    with newest.open("ab") as file:
        file.write(torn)
    spool = Spool(tmp_path, SMALL)
    fill(spool, 1)
    assert [seq for seq, _, _ in spool.unsent(10)] == [last - 2, last - 1, last, last + 1]
    spool.close()


def test_a_torn_first_line_of_a_new_segment(tmp_path: Path) -> None:
    spool = Spool(tmp_path, SMALL)
    fill(spool, 3)
    last = spool.seq
    spool.close()
    (tmp_path / f"{last + 1:020d}.jsonl").write_bytes(b'{"id"')
    spool = Spool(tmp_path, SMALL)
    assert spool.seq == last
    fill(spool, 1)
    assert spool.seq == last + 1
    spool.close()


def test_what_is_acknowledged_is_deleted(tmp_path: Path) -> None:
    spool = Spool(tmp_path, SMALL)
    fill(spool, 50)
    assert len(spool.segments()) > 5
    spool.acknowledge(spool.seq - 1)
    assert len(spool.segments()) == 1
    assert [seq for seq, _, _ in spool.unsent(10)] == [spool.seq]
    spool.acknowledge(spool.seq + 1000)
    assert spool.unsent(10) == []
    last = spool.seq
    spool.close()
    spool = Spool(tmp_path, SMALL)
    assert spool.seq == last, "the newest segment stays, or numbers would begin again"
    spool.close()


def test_a_lost_folder_does_not_number_from_one(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "a", SMALL)
    fill(spool, 5)
    later = Spool(tmp_path / "b", SMALL)
    fill(later, 1)
    assert later.seq > 10**12
    spool.close()
    later.close()


def test_it_is_bounded(tmp_path: Path) -> None:
    spool = Spool(tmp_path, Limits(spool_mib=1))
    fill(spool, 1200, size=1000)
    assert sum(segment.stat().st_size for segment in spool.segments()) <= 2**20
    assert spool.lost > 100
    kept = spool.unsent(5000)
    assert [seq for seq, _, _ in kept] == list(range(kept[0][0], spool.seq + 1)), "no gap"
    spool.acknowledge(spool.seq)
    spool.close()


def test_records_come_out_as_they_went_in(tmp_path: Path) -> None:
    spool = Spool(tmp_path, SMALL)
    spool.append({"id": "甲", "hold_ms": 3})
    ((seq, body, _),) = spool.unsent(10)
    assert msgspec.json.decode(body) == {"id": "甲", "hold_ms": 3, "seq": seq}
    spool.close()


def test_one_process_a_name(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "gw", SMALL)
    with pytest.raises(RuntimeError, match="another gateway runs under the name 'gw'"):
        Spool(tmp_path / "gw", SMALL)
    spool.close()
    Spool(tmp_path / "gw", SMALL).close()
