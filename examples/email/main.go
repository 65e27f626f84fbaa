// Email sends a newsletter and one-time passwords within the limits of a mail provider, in
// the two ways in which providers take mail: by an HTTP API and by SMTP.
//
//	go run ./email
//
// The provider is part of the program, on loopback sockets. Its limits are those of Amazon
// SES for many accounts: 14 mails a second, and 50,000 a day. Here a day takes 10 s and
// has 100, so that its end can be seen.
//
//   - The API is called through a [weir.Transport]. Passwords are PriorityHigh, so each is
//     the next to leave. The day's limit reserves a fifth for them. The newsletter gets
//     only the part of the reserve that is released as the day goes by.
//   - The SMTP server is reached by net/smtp, which knows no RoundTripper. A
//     [shaping.Queue] is in front of each mail instead.
//
// It prints the waits, and draws each mail's wait into email.svg and
// email.png.
package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/examples/internal/chart"
	"github.com/weirgo/weir/examples/internal/program"
	"github.com/weirgo/weir/examples/internal/waits"
	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// newsletter is how many of its mails are in line from the beginning.
const newsletter = 120

// The limits. An account out of the sandbox would have
//
//	throttle.TokenBucket(14, time.Second, 8)
//	throttle.SlidingLog(50_000, 24*time.Hour).Reserving("10%") // SES counts the last 24 hours
//
// The burst is six permits below the provider's 14: two for mails that leave a moment late,
// and four because one new connection may take 0.3 s longer than another.
var (
	rate = throttle.TokenBucket(14, time.Second, 8)
	day  = throttle.FixedWindow(100, 10*time.Second).Aligned(throttle.AlignFirstUse).Reserving("20%")
)

var email = program.Drawing{
	Name:  "email",
	What:  "how long mails are sent",
	Shown: program.Shown{For: 9500 * time.Millisecond, Out: "email"},
	Run:   run,
}

func main() { email.Main() }

// byAPI returns a function that sends mails by an HTTP API, through one client.
func byAPI(url string, base http.RoundTripper) func(context.Context, waits.Kind) error {
	client := &http.Client{Transport: &weir.Transport{Base: base, Limits: []throttle.Limit{rate, day}}}
	return func(ctx context.Context, kind waits.Kind) error {
		if kind == waits.Password {
			ctx = weir.WithPriority(ctx, weir.PriorityHigh)
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v2/email/outbound-emails", strings.NewReader(`{"Content": ...}`))
		if err != nil {
			return err
		}
		return program.Send(client, req)
	}
}

// bySMTP returns a function that sends mails to an SMTP server, in the turns of a queue.
func bySMTP(server string) (send func(context.Context, waits.Kind) error, err error) {
	limiter, err := throttle.Local{}.Limiter("smtp", rate) // no HTTP, and no day: the rate alone
	if err != nil {
		return nil, err
	}
	queue := shaping.NewQueue(limiter)
	return func(ctx context.Context, kind waits.Kind) error {
		if kind == waits.Password {
			ctx = shaping.WithPriority(ctx, shaping.PriorityHigh)
		}
		if err := queue.Wait(ctx); err != nil {
			return err
		}
		return sendMail(server, kind)
	}, nil
}

// run sends the same mails both ways at the same time.
func run(ctx context.Context, o program.Shown, stdout io.Writer) (chart.Picture, error) {
	provider, err := openProvider()
	if err != nil {
		return chart.Picture{}, err
	}
	defer provider.Close()
	viaSMTP, err := bySMTP(provider.smtp.Addr().String())
	if err != nil {
		return chart.Picture{}, err
	}
	fmt.Fprintf(stdout, "A newsletter of %d in line, and passwords now and then. The API: %s and %s. The SMTP server: %s.\n", newsletter, rate, day, rate)

	api := &waits.Line{Name: "API, 100 a day", Bulk: "newsletter", Began: time.Now()}
	smtp := &waits.Line{Name: "SMTP", Bulk: "newsletter", Began: time.Now()}
	var senders sync.WaitGroup
	senders.Go(func() { api.Fill(ctx, newsletter, byAPI(provider.URL, provider.Transport())) })
	senders.Go(func() { smtp.Fill(ctx, newsletter, viaSMTP) })
	senders.Wait()

	waits.WriteTable(stdout, api, smtp)
	fmt.Fprintf(stdout, "The provider refused %d of the API's mails and %d of SMTP's.\n", provider.refused(), provider.refusedSMTP.Load())
	for _, line := range []*waits.Line{api, smtp} {
		if err := line.Err(); err != nil {
			return chart.Picture{}, err
		}
	}
	return waits.Picture(api, smtp), nil
}
