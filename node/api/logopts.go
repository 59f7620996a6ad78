// SPDX-License-Identifier: Apache-2.0

package api

import (
	"net/url"
	"strconv"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// ContainerLogOpts selects a part of a log. The zero value is the whole log of the running container.
type ContainerLogOpts struct {
	// Tail is the number of lines at the end; 0 means all lines. A request for 0 lines does not reach the
	// provider, except with Follow: then SinceTime is the time of the request.
	Tail int
	// LimitBytes is the number of bytes after which the answer is cut; 0 means no limit.
	LimitBytes int
	// Timestamps asks for an RFC 3339 timestamp with nanoseconds and a blank before each line.
	Timestamps bool
	// Follow asks for later lines too, until the container ends.
	Follow bool
	// Previous asks for the log of the container's previous run.
	Previous bool
	// SinceSeconds asks for lines that are at most this many seconds old; 0 means all lines.
	SinceSeconds int
	// SinceTime asks for lines that are not older than this time; the zero time means all lines.
	SinceTime time.Time
}

// parseLogOpts reads the options of a request that arrived at now. nothing means that no line can match, which the options cannot express.
func parseLogOpts(query url.Values, now time.Time) (opts ContainerLogOpts, nothing bool, err error) {
	p := optParser{query: query}
	tail := p.number("tailLines", 0)
	opts = ContainerLogOpts{
		Tail:         valueOrZero(tail),
		Follow:       p.flag("follow"),
		Timestamps:   p.flag("timestamps"),
		Previous:     p.flag("previous"),
		LimitBytes:   valueOrZero(p.number("limitBytes", 1)),
		SinceSeconds: valueOrZero(p.number("sinceSeconds", 1)),
		SinceTime:    p.time("sinceTime"),
	}
	if stream := query.Get("stream"); stream != "" && stream != "All" {
		p.refuse("stream", stream, "must be All: the streams of a container are not kept apart")
	}
	if opts.SinceSeconds > 0 && !opts.SinceTime.IsZero() {
		p.fail(errdefs.InvalidInput("sinceSeconds and sinceTime exclude each other: give one of them"))
	}
	if p.err != nil {
		return ContainerLogOpts{}, false, p.err
	}
	noneYet := tail != nil && *tail == 0
	if noneYet && opts.Follow {
		opts.SinceSeconds, opts.SinceTime = 0, now
	}
	return opts, noneYet && !opts.Follow, nil
}

func valueOrZero(n *int) int {
	if n == nil {
		return 0
	}
	return *n
}

// optParser keeps the first error. An empty value counts as no value.
type optParser struct {
	query url.Values
	err   error
}

func (p *optParser) fail(err error) {
	if p.err == nil {
		p.err = err
	}
}

func (p *optParser) refuse(name, value, why string) {
	p.fail(errdefs.InvalidInputf("%s is %.40q and %s", name, value, why))
}

// number returns the value of an option, or nil if the option is absent.
func (p *optParser) number(name string, least int) *int {
	value := p.query.Get(name)
	if value == "" {
		return nil
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < least {
		p.refuse(name, value, "must be a whole number of at least "+strconv.Itoa(least))
		return nil
	}
	return &n
}

func (p *optParser) flag(name string) bool {
	value := p.query.Get(name)
	if value == "" {
		return false
	}
	set, err := strconv.ParseBool(value)
	if err != nil {
		p.refuse(name, value, "must be true or false")
	}
	return set
}

func (p *optParser) time(name string) time.Time {
	value := p.query.Get(name)
	if value == "" {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339Nano, value)
	if err != nil {
		p.refuse(name, value, "must be a time such as 2006-01-02T15:04:05Z (RFC 3339)")
	}
	return t
}
