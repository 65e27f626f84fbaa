package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/distributed"
	"github.com/weirgo/weir/examples/internal/program"
	"github.com/weirgo/weir/throttle"
)

// taskEnv is the variable that makes this program a replica. It holds the task.
const taskEnv = "WEIR_EXAMPLE_FLEET"

// replicaHeader names the calling replica, for the vendor's record.
const replicaHeader = "X-Replica"

// A task is a replica's parameters at its start.
type task struct {
	Replica  int // its number, from 1
	Replicas int // how many there are
	Workers  int
	Vendor   string // URL
	Redis    string // host:port
	Limit    throttle.Limit
}

// transport is all that a program needs to share a limit with others of its kind. The rest of this
// file calls, counts and reports.
func (t task) transport(rdb redis.UniversalClient) *weir.Transport {
	store := distributed.New(rdb, "fleet")
	store.Replicas = t.Replicas                  // to divide by, if Redis is down from the start
	store.Logger = slog.New(slog.DiscardHandler) // the reports have it
	base := http.DefaultTransport.(*http.Transport).Clone()
	base.MaxIdleConnsPerHost = t.Workers
	return &weir.Transport{
		Base:   base,
		Limits: []throttle.Limit{t.Limit},
		Store:  store,
		Logger: store.Logger,
	}
}

// runReplica is the program of a replica. It reports once when it is ready, begins at the first
// byte on stdin, then reports several times a second. It ends when stdin does, as it does with the
// process at its other end.
func runReplica(encoded string, stdin io.Reader, stdout, stderr io.Writer) int {
	var t task
	if err := json.Unmarshal([]byte(encoded), &t); err != nil {
		fmt.Fprintf(stderr, "%s: %v\n", taskEnv, err)
		return program.ExitUsage
	}
	signal.Ignore(os.Interrupt) // a terminal sends it to us too; our parent asks us to end
	redis.SetLogger(silence{})
	rdb := redis.NewClient(&redis.Options{Addr: t.Redis})
	defer rdb.Close()
	transport := t.transport(rdb)
	defer transport.Store.(io.Closer).Close()
	defer transport.Close()

	l := &load{task: t, transport: transport, out: json.NewEncoder(stdout)}
	l.report()
	begin := make([]byte, 1)
	if _, err := stdin.Read(begin); err != nil {
		return 0
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = stdin.Read(begin)
		cancel()
	}()
	l.run(ctx)
	return 0
}

// silence is a logger for go-redis, which writes to stderr otherwise.
type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}

// A load is calls from a few workers, each one after the other, until the end.
type load struct {
	task      task
	transport *weir.Transport
	out       *json.Encoder

	mu     sync.Mutex
	failed int
	cause  string // of the first failure
}

func (l *load) run(ctx context.Context) {
	client := &http.Client{Transport: l.transport}
	var workers sync.WaitGroup
	for range l.task.Workers {
		workers.Go(func() { l.work(ctx, client) })
	}
	tick := time.NewTicker(reportEvery)
	defer tick.Stop()
	for ctx.Err() == nil {
		select {
		case <-tick.C:
			l.report()
		case <-ctx.Done():
		}
	}
	workers.Wait()
	l.report()
}

func (l *load) work(ctx context.Context, client *http.Client) {
	for ctx.Err() == nil {
		err := l.call(ctx, client)
		if err == nil || ctx.Err() != nil {
			continue
		}
		l.mu.Lock()
		if l.failed++; l.failed == 1 {
			l.cause = err.Error()
		}
		l.mu.Unlock()
		time.Sleep(reportEvery) // no faster after failures
	}
}

func (l *load) call(ctx context.Context, client *http.Client) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, l.task.Vendor, nil)
	if err != nil {
		return err
	}
	req.Header.Set(replicaHeader, strconv.Itoa(l.task.Replica))
	return program.Send(client, req)
}
