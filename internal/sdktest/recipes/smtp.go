package recipes

import (
	"context"
	"errors"
	"net/smtp"
	"net/textproto"
	"strings"
	"time"

	"github.com/weirgo/weir/shaping"
)

// longestPause is how long one refusal stops all mails at most.
const longestPause = time.Minute

// A mailer sends mails through one SMTP server.
type mailer struct {
	dial  func(context.Context) (*smtp.Client, error) // connects, and authenticates
	queue *shaping.Queue                              // +
}

// send waits for a mail's turn, and sends it. After a refusal all mails wait.
func (m *mailer) send(ctx context.Context, from string, to []string, text []byte) error {
	turn := shaping.Turn{N: len(to)} // +
	for pause := time.Second; ; pause *= 2 {
		if err := m.queue.WaitTurn(ctx, &turn); err != nil { // +
			return err // +
		}
		err := m.deliver(ctx, from, to, text)
		if !isRefusal(err) || pause > longestPause {
			return err
		}
		m.queue.Pause(pause) // +
	}
}

// isRefusal reports whether the server gets too many: 421, 454, or 4xx 4.7 (RFC 3463: policy).
func isRefusal(err error) bool {
	var reply *textproto.Error
	return errors.As(err, &reply) && (reply.Code == 421 || reply.Code == 454 || reply.Code/100 == 4 && strings.HasPrefix(reply.Msg, "4.7."))
}

// deliver sends a mail. An error that is a reply says that the server did not take it.
func (m *mailer) deliver(ctx context.Context, from string, to []string, text []byte) error {
	c, err := m.dial(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	if err := c.Mail(from); err != nil {
		return err
	}
	for _, address := range to {
		if err := c.Rcpt(address); err != nil {
			return err
		}
	}
	w, err := c.Data()
	if err != nil {
		return err
	}
	if _, err := w.Write(text); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	_ = c.Quit() // the mail is taken, whatever follows
	return nil
}
