package main

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

func TestDeparturesBeforeARetryTimeAreCounted(t *testing.T) {
	tests := []struct {
		name  string
		field string
		value string
		after time.Duration
		want  int
	}{
		{"before it is known", "Retry-After", "1", hearing / 2, 0},
		{"when it is known", "Retry-After", "1", 2 * hearing, 1},
		{"at the told time", "Retry-After", "1", time.Second, 0},
		{"milliseconds", "Retry-After-Ms", "200", 199 * time.Millisecond, 1},
		{"no number", "Retry-After", "soon", 2 * hearing, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var l watched
				l.refused(http.Header{http.CanonicalHeaderKey(tt.field): {tt.value}}, time.Now())
				time.Sleep(tt.after)
				l.departs(time.Now())
				if got := l.early(); got != tt.want {
					t.Errorf("%v later %d departures are early, want %d", tt.after, got, tt.want)
				}
			})
		})
	}
}
