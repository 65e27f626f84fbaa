package distributed

import (
	"embed"
	"strings"

	"github.com/redis/go-redis/v9"
)

//go:embed lua/*.lua
var sources embed.FS

// script decides for a lane. Redis runs it alone, so that all callers agree.
var script = redis.NewScript(scriptText())

// A part is files of the script, each of which uses those before it.
type part struct {
	function string // that holds them and is called where they are needed; "": they run at once
	files    []string
}

// layers are the parts of the script, the outer ones first. Lua looks for what a
// function takes from the one around it among all that is taken from there, so
// that a function costs less where the one around it is small.
var layers = [][]part{
	{{"", []string{"arithmetic", "lane"}}},
	{
		{"", []string{"bucket", "claims"}},
		{"makeWindows", []string{"spacing", "fixed", "log", "sliding"}},
		{"makeSeldom", []string{"lanes", "slack", "buckets", "change", "contest", "echo", "reports"}},
		{"", []string{"run", "main"}},
	},
}

// scriptText joins the parts, without comments and the space before lines: Redis
// keeps the text, and a caller sends it whenever Redis has lost it.
func scriptText() string {
	var b strings.Builder
	for i, layer := range layers {
		if i > 0 {
			b.WriteString("return (function()\n")
		}
		for _, p := range layer {
			p.write(&b)
		}
	}
	b.WriteString(strings.Repeat("end)()\n", len(layers)-1))
	return b.String()
}

func (p part) write(b *strings.Builder) {
	if p.function != "" {
		b.WriteString(p.function + " = function()\n")
		defer b.WriteString("end\n")
	}
	for _, file := range p.files {
		source, err := sources.ReadFile("lua/" + file + ".lua")
		if err != nil {
			panic("distributed: " + err.Error()) // it is part of the program
		}
		for line := range strings.Lines(string(source)) {
			code, _, _ := strings.Cut(line, "--")
			if code = strings.TrimSpace(code); code != "" {
				b.WriteString(code)
				b.WriteByte('\n')
			}
		}
	}
}
