package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/weirgo/weir/examples/internal/programtest"
)

// passwords is a row of them: came, sent.
var passwords = regexp.MustCompile(`(?m)^ *(API|SMTP).* passwords +(\d+) +(\d+) `)

func TestShortRunSendsBothWaysAndIsNotRefused(t *testing.T) {
	code, stdout, pictures := programtest.Run(t.Context(), t, email.Exit, "-for", "3s")
	if code != 0 || !pictures {
		t.Errorf("exit %d, pictures %v\n%s", code, pictures, stdout)
	}
	rows := passwords.FindAllStringSubmatch(stdout, -1)
	if len(rows) != 2 {
		t.Fatalf("%d rows of passwords, want 2\n%s", len(rows), stdout)
	}
	for _, row := range rows {
		if row[2] == "0" || row[3] == "0" {
			t.Errorf("%s: %s came and %s were sent, want some", row[1], row[2], row[3])
		}
	}
	if !strings.Contains(stdout, "refused 0 of the API's mails and 0 of SMTP's") {
		t.Errorf("mails were refused\n%s", stdout)
	}
}
