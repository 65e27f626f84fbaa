package script

import (
	"crypto/sha1"
	"embed"
	"encoding/hex"
	"strings"
)

//go:embed lua/*.lua
var sources embed.FS

// A Program is a script in the words of the commands that run it. They are interfaces because
// converting a string to one allocates with each call.
type Program struct{ Hash, Source any }

var (
	scriptSource = textOf(layers...)
	slotsSource  = textOf([]module{{"", []string{"slots"}}})

	// Decide decides for a lane. Redis runs one script at a time, so all callers agree.
	Decide = newProgram(scriptSource)
	// Slots shares slots among replicas. Few lanes need it, and not in the same calls as Decide.
	Slots = newProgram(slotsSource)
)

func newProgram(source string) Program {
	sum := sha1.Sum([]byte(source)) // by which Redis identifies a script
	return Program{hex.EncodeToString(sum[:]), source}
}

// A module is files of the script. Each file uses the locals of those before it.
type module struct {
	function string // the Lua function that holds the files, called when they are needed; "": they run at once
	files    []string
}

// layers are the modules of the script, the outer ones first. A Lua function reaches locals
// of the function around it as upvalues, and Lua looks for one among all upvalues of that
// function: a call costs less if each layer is small.
var layers = [][]module{
	{{"", []string{"usual", "arithmetic", "lane"}}},
	{
		{"", []string{"bucket", "claims"}},
		{"makeWindows", []string{"spacing", "counting", "fixed", "log", "sliding"}},
		{"makeLearned", []string{"learned"}},
		{"makeRare", []string{"rare_lane", "slack", "rare_bucket", "change", "contest", "echo", "reports"}},
		{"", []string{"run", "main"}},
	},
}

// textOf joins the modules of layers without comments and indentation: Redis keeps the text, and a
// caller sends it whenever Redis has lost it.
func textOf(layers ...[]module) string {
	var b strings.Builder
	for i, layer := range layers {
		if i > 0 {
			b.WriteString("return (function()\n")
		}
		for _, m := range layer {
			m.write(&b)
		}
	}
	b.WriteString(strings.Repeat("end)()\n", len(layers)-1))
	return b.String()
}

// write writes a module's files, in its Lua function if it has one.
func (m module) write(b *strings.Builder) {
	if m.function != "" {
		b.WriteString(m.function + " = function()\n")
		defer b.WriteString("end\n")
	}
	for _, file := range m.files {
		writeLean(b, file)
	}
}

// writeLean writes a file without comments and indentation.
func writeLean(b *strings.Builder, file string) {
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
