async def test_the_findings_are_told_and_with_fix_what_was_mended(house, connect):
    async with house.open(), connect() as line:
        looked = (await line.call("memd/doctor"))["result"]
        assert looked["mended"] == []
        assert looked["findings"] == [
            {
                "name": "books",
                "verdict": "ok",
                "words": "played",
                "remedy": "",
                "fixable": False,
            }
        ]
        mended = (await line.call("memd/doctor", {"fix": True}))["result"]
        assert mended["mended"] == ["played"]
