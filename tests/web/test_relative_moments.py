"""A moment that counts from the last event: answers, pages and commands name its instant."""

import pytest

from tests.api.serving import CONFIG_MAPS, config_map, serving
from tests.web.reading import read


@pytest.mark.parametrize("part", ["why?kind=cm&name=m", "findings", "timeline", "lanes"])
async def test_answers_name_the_instant_of_a_relative_moment(part):
    async with serving() as server:
        await server.post(CONFIG_MAPS, config_map())
        path = f"/redra/v1/histories/default/{part}{'&' if '?' in part else '?'}at="
        last = (await server.get("/redra/v1/histories/default"))["time"]
        answer = await server.get(f"{path}0s")
        assert answer["asOf"].startswith("0s before the last event at ")
        assert answer["asOf"].split()[-1][:19] == last[:19]
        for moment in ("", str(answer["revision"])):
            assert "asOf" not in await server.get(f"{path}{moment}")


async def test_pages_name_the_instant_of_a_relative_moment():
    async with serving() as server:
        await server.post(CONFIG_MAPS, config_map())
        said = [
            read((await server.raw("GET", f"/ui/h/default{moment}/")).text)
            .one("span", "shown")
            .text
            for moment in ("@0s", "")
        ]
    assert "(0s before the last event at " in said[0]
    assert "before" not in said[1]
