package main

import "testing"

func TestPageHasTheLastTableWithoutEmptyColumns(t *testing.T) {
	const out = "title\n\n| a |\n|---|\n| run 1 |\n\n| a | b | c |\n|---|---|---|\n| who=floor |  | 1 |\n\nok\n"
	const want = "| a | c |\n| --- | --- |\n| one clock read and one compare-and-swap | 1 |\n"
	if got := names.Replace(filled(lastTable(out))); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestVersionOfTheServer(t *testing.T) {
	if got := version("Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.3.0"); got != "7.0.15" {
		t.Errorf("version %q, want 7.0.15", got)
	}
}
