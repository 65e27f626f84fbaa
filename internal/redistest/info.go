package redistest

import (
	"strconv"
	"strings"
	"time"
)

// Commands returns how often each command was run since the server's start or CONFIG RESETSTAT, by
// the names of INFO commandstats: "evalsha", "config|set". Commands of a script count too, refused
// ones do not.
func (s *Server) Commands() map[string]int {
	s.tb.Helper()
	calls := make(map[string]int)
	for name, stats := range s.info("commandstats") {
		first, _, _ := strings.Cut(stats, ",")
		n, _ := strconv.Atoi(strings.TrimPrefix(first, "calls="))
		if n > 0 {
			calls[strings.TrimPrefix(name, "cmdstat_")] = n
		}
	}
	return calls
}

// CPU returns the processor time that the server has used since it started.
func (s *Server) CPU() time.Duration {
	s.tb.Helper()
	info := s.info("cpu")
	return seconds(info["used_cpu_user"]) + seconds(info["used_cpu_sys"])
}

func seconds(text string) time.Duration {
	f, _ := strconv.ParseFloat(text, 64)
	return time.Duration(f * float64(time.Second))
}

// info returns the fields of a section of INFO.
func (s *Server) info(section string) map[string]string {
	s.tb.Helper()
	reply, err := s.Do("INFO", section)
	if err != nil {
		s.tb.Errorf("redistest: INFO %s: %v", section, err)
	}
	return fields(reply)
}

// fields reads lines of the form name:value.
func fields(reply any) map[string]string {
	text, _ := reply.(string)
	all := make(map[string]string)
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			all[name] = value
		}
	}
	return all
}
