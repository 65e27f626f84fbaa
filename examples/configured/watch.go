package main

import (
	"context"
	"encoding/json"
	"os"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/weirgo/weir"
)

// watch applies a file to the transport whenever it changes, until ctx ends. A wrong configuration
// is reported, and changes nothing.
func watch(ctx context.Context, path string, transport *weir.Transport, report func(error)) {
	var read time.Time
	for ctx.Err() == nil {
		if info, err := os.Stat(path); err == nil && info.ModTime() != read {
			read = info.ModTime()
			report(load(path, transport))
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

// load applies a file to the transport. JSON is YAML, too.
func load(path string, transport *weir.Transport) error {
	var c weir.Config
	text, err := os.ReadFile(path)
	if err == nil {
		text, err = yaml.YAMLToJSONStrict(text)
	}
	if err == nil {
		err = json.Unmarshal(text, &c)
	}
	if err == nil {
		err = transport.Apply(c)
	}
	return err
}
