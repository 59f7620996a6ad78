// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"encoding/base64"
	"encoding/xml"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/providers/emulator"
)

const (
	maxUserData = 16 << 10 // bytes
	maxToken    = 64       // characters
)

// Host runs the machines of instances.
type Host interface {
	// Boot starts the machine of an instance, and returns its private address. The machine reaches the metadata service at
	// 169.254.169.254.
	Boot(id, instanceType string, metadata http.Handler) (address string, err error)
	// IsRunning reports whether the machine runs. A machine that has powered itself off does not.
	IsRunning(id string) bool
	// Console returns the console output of a machine, which may have ended.
	Console(id string) string
	// End ends the machine.
	End(id string)
}

// Server is the API. Its Front records requests, and breaks them.
type Server struct {
	*emulator.Front
	host Host

	mu     sync.Mutex
	all    []*instance // guarded by mu, as all below
	page   int         // maximum number of instances on a page; 0: as requested
	hidden bool        // lists lack every instance
}

// New returns a server. A nil host means that instances have no machines.
func New(h Host) *Server {
	s := &Server{host: h}
	s.Front = emulator.NewFront(func(_ *http.Request, body []byte) string {
		form, _ := url.ParseQuery(string(body)) // serve refuses an invalid form
		return form.Get("Action")
	}, http.HandlerFunc(s.serve))
	return s
}

// instance is an instance in answers.
type instance struct {
	XMLName   xml.Name  `xml:"item"`
	ID        string    `xml:"instanceId"`
	State     string    `xml:"instanceState>name"`
	IP        string    `xml:"privateIpAddress"`
	Public    string    `xml:"ipAddress"`
	Type      string    `xml:"instanceType"`
	Launch    time.Time `xml:"launchTime"`
	Lifecycle string    `xml:"instanceLifecycle,omitempty"`
	Code      string    `xml:"stateReason>code,omitempty"`
	Tags      []tag     `xml:"tagSet>item"`

	token, request string
	terminates     bool // when its machine powers itself off
	pages          map[string][]byte
}

type tag struct {
	Key   string `xml:"key"`
	Value string `xml:"value"`
}

func (i *instance) setTag(k, v string) {
	for n := range i.Tags {
		if i.Tags[n].Key == k {
			i.Tags[n].Value = v
			return
		}
	}
	i.Tags = append(i.Tags, tag{k, v})
}

// SetPage limits the instances on a page of a list. 0 means no limit.
func (s *Server) SetPage(most int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.page = most
}

// Hide makes lists lack every instance, as EC2 does for a while after a start.
func (s *Server) Hide(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hidden = on
}

// SetState sets the state of an instance, and the code of its reason.
func (s *Server) SetState(id, state, code string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := s.find(id); i != nil {
		i.State, i.Code = state, code
	}
}

// Running returns the IDs of the instances that cost money.
func (s *Server) Running() (ids []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, i := range s.all {
		if s.update(i); i.State != terminated {
			ids = append(ids, i.ID)
		}
	}
	return ids
}

// find returns an instance, or nil. The caller holds s.mu.
func (s *Server) find(id string) *instance {
	if n := slices.IndexFunc(s.all, func(i *instance) bool { return i.ID == id }); n >= 0 {
		return s.all[n]
	}
	return nil
}

// States of instances.
const (
	pending      = "pending"
	running      = "running"
	shuttingDown = "shutting-down"
	stopped      = "stopped"
	terminated   = "terminated"
)

// update sets the state of an instance to that of its machine. The caller holds s.mu.
func (s *Server) update(i *instance) {
	if s.host == nil {
		return
	}
	switch runs := s.host.IsRunning(i.ID); {
	case i.State == pending && runs:
		i.State = running
	case i.State == shuttingDown && !runs:
		i.State = terminated
	case (i.State == pending || i.State == running) && !runs:
		i.Code = "Client.InstanceInitiatedShutdown"
		if i.State = stopped; i.terminates {
			i.State = terminated
		}
	}
}

// Refuse returns an answer with an error code of EC2, for a fault of the Front.
func Refuse(status int, code string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { refuse(w, status, code, "because of a test") }
}

func refuse(w http.ResponseWriter, status int, code, message string) {
	w.WriteHeader(status)
	var text strings.Builder
	_ = xml.EscapeText(&text, []byte(message)) // a Builder takes everything
	fmt.Fprintf(w, "<Response><Errors><Error><Code>%s</Code><Message>%s</Message></Error></Errors><RequestID>r-1</RequestID></Response>", code, &text)
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := r.ParseForm(); err != nil || !strings.HasPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 ") {
		refuse(w, http.StatusForbidden, "AuthFailure", "AWS was not able to validate the provided access credentials")
		return
	}
	in := r.PostForm
	action := in.Get("Action")
	code, message := Check(action, in)
	if code != "" {
		refuse(w, http.StatusBadRequest, code, message)
		return
	}
	switch action {
	case "RunInstances":
		s.run(w, in)
	case "DescribeInstances":
		s.describe(w, in)
	default:
		s.change(w, action, in)
	}
}

// run creates an instance, or returns the instance of the client token.
func (s *Server) run(w http.ResponseWriter, in url.Values) {
	token, request := in.Get("ClientToken"), in.Encode()
	data, err := base64.StdEncoding.DecodeString(in.Get("UserData"))
	switch {
	case len(token) > maxToken || in.Get("MinCount") != "1" || in.Get("MaxCount") != "1":
		refuse(w, http.StatusBadRequest, "InvalidParameterValue", "the emulator makes one instance in a request, with a token of at most 64 characters")
		return
	case err != nil || len(data) > maxUserData:
		refuse(w, http.StatusBadRequest, "InvalidParameterValue", "User data is limited to 16384 bytes")
		return
	}
	for _, i := range s.all {
		switch {
		case token == "" || i.token != token:
		case i.request != request:
			refuse(w, http.StatusBadRequest, "IdempotentParameterMismatch", "The client token belongs to a request with other parameters")
			return
		default:
			s.answer(w, "RunInstances", "instancesSet", "", i)
			return
		}
	}
	n := len(s.all) + 1
	i := &instance{
		ID: fmt.Sprintf("i-%017x", n), State: pending, IP: fmt.Sprintf("10.0.0.%d", n), Public: fmt.Sprintf("198.51.100.%d", n), Type: in.Get("InstanceType"),
		Launch: time.Now().UTC(), token: token, request: request, terminates: in.Get("InstanceInitiatedShutdownBehavior") == "terminate",
		pages: map[string][]byte{"user-data": data, "meta-data/instance-type": []byte(in.Get("InstanceType"))},
	}
	if in.Get("InstanceMarketOptions.MarketType") == "spot" {
		i.Lifecycle = "spot"
	}
	for n := 1; in.Get(fmt.Sprintf("TagSpecification.%d.ResourceType", n)) != ""; n++ {
		if at := fmt.Sprintf("TagSpecification.%d.", n); in.Get(at+"ResourceType") == "instance" {
			i.setTags(in, at)
		}
	}
	if s.host != nil {
		if i.IP, err = s.host.Boot(i.ID, i.Type, newMetadata(i.pages)); err != nil {
			refuse(w, http.StatusBadRequest, "InsufficientInstanceCapacity", err.Error())
			return
		}
	}
	s.all = append(s.all, i)
	s.answer(w, "RunInstances", "instancesSet", "", i)
}

// setTags sets the tags of a request, whose names begin with at.
func (i *instance) setTags(in url.Values, at string) {
	for k := 1; in.Get(fmt.Sprintf("%sTag.%d.Key", at, k)) != ""; k++ {
		i.setTag(in.Get(fmt.Sprintf("%sTag.%d.Key", at, k)), in.Get(fmt.Sprintf("%sTag.%d.Value", at, k)))
	}
}

func (s *Server) describe(w http.ResponseWriter, in url.Values) {
	var some []*instance
	for _, i := range s.all {
		if s.update(i); !s.hidden && i.matches(in) {
			some = append(some, i)
		}
	}
	most, _ := strconv.Atoi(in.Get("MaxResults")) // Check has verified that it is a number
	if s.page > 0 {
		most = s.page
	}
	from, _ := strconv.Atoi(in.Get("NextToken"))
	to, next := len(some), ""
	if most > 0 && from+most < to {
		to = from + most
		next = strconv.Itoa(to)
	}
	s.answer(w, "DescribeInstances", "reservationSet", next, some[min(from, to):to]...)
}

// unescape returns the text that a filter's value stands for. The emulator has no wildcards.
var unescape = strings.NewReplacer(`\\`, `\`, `\*`, `*`, `\?`, `?`).Replace

func (i *instance) matches(in url.Values) bool {
	for n := 1; in.Get(fmt.Sprintf("Filter.%d.Name", n)) != ""; n++ {
		name, value := in.Get(fmt.Sprintf("Filter.%d.Name", n)), unescape(in.Get(fmt.Sprintf("Filter.%d.Value.1", n)))
		has := name == "instance-id" && value == i.ID || name == "client-token" && value == i.token
		for _, t := range i.Tags {
			has = has || name == "tag:"+t.Key && value == t.Value
		}
		if !has {
			return false
		}
	}
	return true
}

// change handles the operations on one instance.
func (s *Server) change(w http.ResponseWriter, action string, in url.Values) {
	id := in.Get("InstanceId") + in.Get("InstanceId.1") + in.Get("ResourceId.1")
	i := s.find(id)
	if i == nil {
		refuse(w, http.StatusBadRequest, "InvalidInstanceID.NotFound", fmt.Sprintf("The instance ID '%s' does not exist", id))
		return
	}
	answer := "<return>true</return>"
	switch action {
	case "TerminateInstances":
		if i.State != terminated {
			i.State, i.Code = shuttingDown, "Client.UserInitiatedShutdown"
		}
		if s.host != nil {
			s.host.End(id)
		}
	case "CreateTags":
		i.setTags(in, "")
	case "GetConsoleOutput":
		text := "booted"
		if s.host != nil {
			text = s.host.Console(id)
		}
		answer = fmt.Sprintf("<instanceId>%s</instanceId><output>%s</output>", id, base64.StdEncoding.EncodeToString([]byte(text)))
	}
	fmt.Fprintf(w, "<%[1]sResponse>%[2]s</%[1]sResponse>", action, answer)
}

// answer writes a set of instances.
func (s *Server) answer(w http.ResponseWriter, action, set, next string, some ...*instance) {
	var items strings.Builder
	for _, i := range some {
		text, err := xml.Marshal(i)
		if err != nil {
			panic(err) // the structure always marshals
		}
		if set == "reservationSet" {
			text = fmt.Appendf(nil, "<item><reservationId>r</reservationId><instancesSet>%s</instancesSet></item>", text)
		}
		items.Write(text)
	}
	if next != "" {
		next = "<nextToken>" + next + "</nextToken>"
	}
	fmt.Fprintf(w, "<%[1]sResponse><%[2]s>%[3]s</%[2]s>%[4]s</%[1]sResponse>", action, set, items.String(), next)
}
