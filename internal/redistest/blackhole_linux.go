package redistest

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"time"
)

// A hole is a listener whose queue is full, with the connections that fill
// it. Linux drops the SYN of a connection that has no place: see
// Documentation/networking/ip-sysctl.rst, tcp_abort_on_overflow, and
// listen(2) on the backlog.
type hole struct {
	fd     int
	filler []net.Conn
}

// blackHole listens with a backlog of zero, which holds one connection.
func blackHole(addr string) (io.Closer, error) {
	at, err := net.ResolveTCPAddr("tcp", addr)
	if err != nil {
		return nil, err
	}
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	h := &hole{fd: fd}
	if err := h.listen(at); err != nil {
		_ = h.Close()
		return nil, err
	}
	if err := h.fill(addr); err != nil {
		_ = h.Close()
		return nil, err
	}
	return h, nil
}

func (h *hole) listen(at *net.TCPAddr) error {
	if err := syscall.SetsockoptInt(h.fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1); err != nil {
		return os.NewSyscallError("setsockopt", err)
	}
	to := &syscall.SockaddrInet4{Port: at.Port, Addr: [4]byte(at.IP.To4())}
	if err := syscall.Bind(h.fd, to); err != nil {
		return os.NewSyscallError("bind", err)
	}
	return os.NewSyscallError("listen", syscall.Listen(h.fd, 0))
}

// fill connects until no further connection succeeds.
func (h *hole) fill(addr string) error {
	for range 8 {
		conn, err := net.DialTimeout("tcp", addr, 100*time.Millisecond)
		if timeout := net.Error(nil); errors.As(err, &timeout) && timeout.Timeout() {
			return nil
		}
		if err != nil {
			return err
		}
		h.filler = append(h.filler, conn)
	}
	return errors.New("the queue of the listener does not fill")
}

func (h *hole) Close() error {
	for _, conn := range h.filler {
		_ = conn.Close()
	}
	return syscall.Close(h.fd)
}
