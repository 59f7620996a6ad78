// SPDX-License-Identifier: Apache-2.0

package nova

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providers/kip/internal/machine"
)

type object = map[string]any

// cloud emulates Keystone, and Nova with microversion 2.52. Its servers run no machine.
type cloud struct {
	mu           sync.Mutex
	url          string
	all          []*emulated
	noCredential bool              // Keystone has no such application credential
	tokens       int               // number of issued tokens; only the last one is valid
	creates      int               // number of creates with an effect
	refuse       map[string]answer // by method and path
	full         []string          // IDs of flavors without a host
	page         int               // number of servers on a page; 0: all
	silent       bool              // the response to a create is lost
	request      object            // the last create
}

type answer struct {
	status  int
	kind    string
	message string
	after   int // seconds
}

type emulated struct {
	object
	tags   []string
	flavor string
	looks  int
}

// Formats of the request bodies. Source: nova/api/openstack/compute/schemas/servers.py, nova/api/validation/parameter_types.py and server_metadata.py of
// openstack/nova at a948a803 and later, read 2026-11-28.
var (
	uuidFormat = regexp.MustCompile(`^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$`)
	keyFormat  = regexp.MustCompile(`^[a-zA-Z0-9-_:. ]{1,255}$`)
	tagFormat  = regexp.MustCompile(`^[^,/]{1,60}$`)
	nameFormat = regexp.MustCompile(`^\S(.{0,253}\S)?$`)
	lookups    = []string{"name", "tags", "marker", "limit"} // of many more
)

func isText(format *regexp.Regexp) func(any) bool {
	return func(v any) bool { s, ok := v.(string); return ok && format.MatchString(s) }
}

func isList(of func(any) bool) func(any) bool {
	return func(v any) bool {
		all, ok := v.([]any)
		return ok && !slices.ContainsFunc(all, func(v any) bool { return !of(v) })
	}
}

// isObject accepts an object with these fields and no other.
func isObject(required []string, fields map[string]func(any) bool) func(any) bool {
	return func(v any) bool {
		o, ok := v.(object)
		for name, value := range o {
			of := fields[name]
			ok = ok && of != nil && of(value)
		}
		return ok && !slices.ContainsFunc(required, func(name string) bool { _, has := o[name]; return !has })
	}
}

func isMetadata(v any) bool {
	o, ok := v.(object)
	for key, value := range o {
		s, text := value.(string)
		ok = ok && text && keyFormat.MatchString(key) && len([]rune(s)) <= 255
	}
	return ok
}

func isBool(v any) bool { _, ok := v.(bool); return ok }

func isNumber(v any) bool { n, ok := v.(float64); return ok && n >= 0 }

func isUserData(v any) bool {
	s, ok := v.(string)
	_, err := base64.StdEncoding.DecodeString(s)
	return ok && err == nil && len(s) <= 65535
}

// valid checks bodies by method and the shape of the path.
var valid = map[string]func(any) bool{
	"POST servers": isObject([]string{"server"}, map[string]func(any) bool{"server": isObject([]string{"name", "flavorRef", "networks"}, map[string]func(any) bool{
		"name": isText(nameFormat), "imageRef": func(v any) bool { return v == "" || isText(uuidFormat)(v) }, "flavorRef": isText(regexp.MustCompile(".")),
		"metadata": isMetadata, "tags": isList(isText(tagFormat)), "user_data": isUserData, "config_drive": isBool, "availability_zone": isText(nameFormat),
		"networks":        isList(isObject(nil, map[string]func(any) bool{"uuid": isText(uuidFormat), "port": isText(uuidFormat)})),
		"security_groups": isList(isObject(nil, map[string]func(any) bool{"name": isText(nameFormat)})),
		"block_device_mapping_v2": isList(isObject(nil, map[string]func(any) bool{
			"boot_index": isNumber, "uuid": isText(uuidFormat), "source_type": isText(regexp.MustCompile("^(volume|image|snapshot|blank)$")),
			"destination_type": isText(regexp.MustCompile("^(local|volume)$")), "volume_size": isNumber, "delete_on_termination": isBool,
		})),
	})}),
	"POST servers metadata": isObject([]string{"metadata"}, map[string]func(any) bool{"metadata": isMetadata}),
	"POST servers action":   isObject([]string{"os-getConsoleOutput"}, map[string]func(any) bool{"os-getConsoleOutput": isObject(nil, map[string]func(any) bool{"length": isNumber})}),
}

func (c *cloud) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	path, compute := strings.CutPrefix(r.URL.Path, "/compute/v2.1/")
	switch {
	case !compute:
		c.identity(w, r)
		return
	case r.Header.Get("X-Auth-Token") != fmt.Sprint("token-", c.tokens):
		say(w, answer{status: http.StatusUnauthorized, kind: "unauthorized"})
		return
	case r.Header.Get("OpenStack-API-Version") != "compute 2.52":
		say(w, answer{http.StatusBadRequest, "badRequest", "another microversion would have another schema", 0})
		return
	}
	if no, is := c.refuse[r.Method+" "+path]; is {
		say(w, no)
		return
	}
	parts := strings.Split(path, "/")
	shape := r.Method + " " + parts[0]
	if len(parts) > 2 {
		shape += " " + parts[2]
	}
	var in object
	if check := valid[shape]; r.Method == http.MethodPost && (json.NewDecoder(r.Body).Decode(&in) != nil || check == nil || !check(any(in))) {
		say(w, answer{http.StatusBadRequest, "badRequest", fmt.Sprintf("Invalid input for %s: %v", shape, in), 0})
		return
	}
	c.serve(w, r, shape, parts, in)
}

func (c *cloud) serve(w http.ResponseWriter, r *http.Request, shape string, parts []string, in object) {
	switch {
	case shape == "POST servers":
		c.create(w, in["server"].(object))
		return
	case shape == "GET flavors":
		c.listFlavors(w, r.URL.Query().Get("marker"))
		return
	case len(parts) == 2 && parts[1] == "detail":
		c.list(w, r.URL.Query())
		return
	}
	n := slices.IndexFunc(c.all, func(e *emulated) bool { return len(parts) > 1 && e.object["id"] == parts[1] })
	if n < 0 {
		say(w, answer{http.StatusNotFound, "itemNotFound", "Instance could not be found.", 0})
		return
	}
	e := c.all[n]
	switch shape {
	case "GET servers":
		reply(w, http.StatusOK, object{"server": c.look(e)})
	case "DELETE servers":
		e.object["OS-EXT-STS:task_state"] = "deleting"
		w.WriteHeader(http.StatusNoContent)
	case "POST servers metadata":
		maps.Copy(e.object["metadata"].(object), in["metadata"].(object))
		reply(w, http.StatusOK, object{"metadata": e.object["metadata"]})
	default:
		reply(w, http.StatusOK, object{"output": "booted"})
	}
}

func (c *cloud) create(w http.ResponseWriter, in object) {
	c.request = in
	c.creates++
	id := fmt.Sprintf("00000000-0000-4000-8000-%012d", len(c.all)+1)
	e := &emulated{flavor: in["flavorRef"].(string), object: object{
		"id": id, "name": in["name"], "status": "BUILD", "OS-EXT-STS:task_state": "scheduling", "created": "2026-01-01T00:00:00Z", "addresses": object{},
		"metadata": in["metadata"], "flavor": object{"original_name": map[string]string{"1": "m1.small", "2": "m1.large"}[in["flavorRef"].(string)], "vcpus": 1},
	}}
	for _, tag := range in["tags"].([]any) {
		e.tags = append(e.tags, tag.(string))
	}
	c.all = append(c.all, e)
	if c.silent {
		panic(http.ErrAbortHandler)
	}
	reply(w, http.StatusAccepted, object{"server": object{"id": id, "links": []object{}, "adminPass": "x"}})
}

// look returns a server for an answer. The scheduler finds a host, or none, after the first look.
func (c *cloud) look(e *emulated) object {
	if e.looks++; e.looks > 1 && e.object["OS-EXT-STS:task_state"] == "scheduling" {
		if e.object["OS-EXT-STS:task_state"] = "spawning"; slices.Contains(c.full, e.flavor) {
			e.object["OS-EXT-STS:task_state"], e.object["status"] = nil, "ERROR"
			e.object["fault"] = object{"code": 500, "message": "No valid host was found. There are not enough hosts available.", "created": "2026-01-01T00:00:00Z"}
		}
	}
	return e.object
}

func (c *cloud) list(w http.ResponseWriter, query url.Values) {
	for name := range query {
		if !slices.Contains(lookups, name) {
			say(w, answer{http.StatusBadRequest, "badRequest", "unknown " + name, 0})
			return
		}
	}
	name, err := regexp.Compile("(?i)" + query.Get("name")) // MySQL compares so
	if err != nil {
		say(w, answer{http.StatusBadRequest, "badRequest", err.Error(), 0})
		return
	}
	some, past := []object{}, query.Get("marker") == ""
	more := false
	for _, e := range c.all {
		if !past {
			past = e.object["id"] == query.Get("marker")
			continue
		}
		if !name.MatchString(e.object["name"].(string)) || query.Get("tags") != "" && !slices.Contains(e.tags, query.Get("tags")) {
			continue
		}
		if more = c.page > 0 && len(some) == c.page; more {
			break
		}
		some = append(some, c.look(e))
	}
	out := object{"servers": some}
	if more {
		out["servers_links"] = []object{{"rel": "next", "href": c.url + "/compute/v2.1/servers/detail?marker=…"}}
	}
	reply(w, http.StatusOK, out)
}

// listFlavors answers with a page of flavors.
func (c *cloud) listFlavors(w http.ResponseWriter, marker string) {
	some := []object{{"id": "1", "name": "m1.small"}, {"id": "2", "name": "m1.large"}}
	if n := slices.IndexFunc(some, func(f object) bool { return f["id"] == marker }); n >= 0 {
		some = some[n+1:]
	}
	out := object{"flavors": some}
	if c.page > 0 && len(some) > c.page {
		out["flavors"], out["flavors_links"] = some[:c.page], []object{{"rel": "next", "href": c.url + "/compute/v2.1/flavors?marker=…"}}
	}
	reply(w, http.StatusOK, out)
}

// identity implements the part of Keystone's version 3 that a login with a password needs.
func (c *cloud) identity(w http.ResponseWriter, r *http.Request) {
	version := object{"id": "v3.14", "status": "stable", "links": []object{{"rel": "self", "href": c.url + "/identity/v3/"}}}
	switch strings.TrimSuffix(r.URL.Path, "/") {
	case "/identity":
		reply(w, http.StatusMultipleChoices, object{"versions": object{"values": []object{version}}})
	case "/identity/v3":
		reply(w, http.StatusOK, object{"version": version})
	case "/identity/v3/auth/tokens":
		if c.noCredential {
			say(w, answer{http.StatusNotFound, "error", "Could not find Application Credential.", 0})
			return
		}
		text, _ := io.ReadAll(r.Body)
		if !strings.Contains(string(text), `"password":"secret"`) {
			say(w, answer{http.StatusUnauthorized, "error", "The request you have made requires authentication.", 0})
			return
		}
		c.tokens++
		w.Header().Set("X-Subject-Token", fmt.Sprint("token-", c.tokens))
		endpoint := object{"interface": "public", "region": "one", "region_id": "one", "url": c.url + "/compute/v2.1"}
		reply(w, http.StatusCreated, object{"token": object{
			"expires_at": time.Now().Add(time.Hour).UTC().Format("2006-01-02T15:04:05.000000Z"), "catalog": []object{{"type": "compute", "name": "nova", "endpoints": []object{endpoint}}},
		}})
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

func reply(w http.ResponseWriter, status int, body object) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

func say(w http.ResponseWriter, a answer) {
	if a.after > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(a.after))
	}
	reply(w, a.status, object{a.kind: object{"code": a.status, "message": a.message}})
}

const (
	networkID = "11111111-2222-4333-8444-555555555555"
	imageID   = "99999999-2222-4333-8444-555555555555"
)

// start returns a driver for a new cloud.
func start(t *testing.T, c Config) (*Driver, *cloud) {
	t.Helper()
	emulated := &cloud{refuse: map[string]answer{}}
	s := httptest.NewServer(emulated)
	t.Cleanup(s.Close)
	emulated.url = s.URL
	file := filepath.Join(t.TempDir(), "clouds.yaml")
	text := fmt.Sprintf("clouds: {lab: {region_name: one, auth: {auth_url: %s/identity, username: u, password: secret, project_id: p, user_domain_name: Default}}}\n", s.URL)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("OS_CLIENT_CONFIG_FILE", file)
	c.Cloud, c.NetworkID = "lab", networkID
	d, err := New(c, 6421)
	if err != nil {
		t.Fatal(err)
	}
	d.look = time.Millisecond
	return d, emulated
}

func (c *cloud) set(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change()
}

func spec(token string) machine.Spec {
	return machine.Spec{
		Token: token, Type: machine.Type{Name: "m1.small"}, Image: imageID, UserData: []byte(`{"a": "b"}`),
		Tags: map[string]string{"vk-cluster": "home", "vk-node": "vk", "vk-token": token, "Name": strings.Repeat("n", 300)},
	}
}

// TestNovaStartHasEverything: the create request has all settings that a later request would set too late, within Nova's schema.
func TestNovaStartHasEverything(t *testing.T) {
	d, c := start(t, Config{SecurityGroups: []string{"agents"}, AvailabilityZone: "az1", ConfigDrive: true})
	s := spec("vk-token-1")
	s.SecurityGroups, s.VolumeGiB = []string{"more"}, 8
	m, err := d.Start(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	if m.State != machine.Starting || m.Type != "m1.small" || m.Tags["vk-token"] != "vk-token-1" || m.Created.IsZero() {
		t.Errorf("got %+v", m)
	}
	var text []byte
	c.set(func() { text, _ = json.Marshal(c.request) }) // it came from JSON
	for _, want := range []string{
		`"name":"vk-token-1"`, `"flavorRef":"1"`, `"config_drive":true`, `"availability_zone":"az1"`, `"networks":[{"uuid":"` + networkID + `"}]`,
		`"security_groups":[{"name":"agents"},{"name":"more"}]`, `"delete_on_termination":true`, `"volume_size":8`, `"uuid":"` + imageID + `"`,
		`"user_data":"` + base64.StdEncoding.EncodeToString(s.UserData) + `"`, `"vk-cluster":"home"`, `"tags":["` + group(s.Tags) + `"]`,
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the create has no %s: %s", want, text)
		}
	}
	s.UserData = make([]byte, 50<<10)
	if _, err := d.Start(t.Context(), s); !errdefs.IsInvalidInput(err) {
		t.Errorf("user data of more than 64 KiB in Base64: %v", err)
	}
	s = spec("vk-token-2")
	s.Spot = true
	if _, err := d.Start(t.Context(), s); !errdefs.IsInvalidInput(err) {
		t.Errorf("a spot machine: %v", err)
	}
}

// TestNovaTokenIsOneServer: a repeated start returns the first server, also after a lost answer. While lists lack the server, there is no second create.
func TestNovaTokenIsOneServer(t *testing.T) {
	d, c := start(t, Config{})
	c.set(func() { c.silent = true })
	if _, err := d.Start(t.Context(), spec("vk-1")); err == nil || machine.RefusalOf(err) != 0 || errdefs.IsInvalidInput(err) {
		t.Errorf("a lost answer is %v, want an error that says nothing of the machine", err)
	}
	var hidden []*emulated
	c.set(func() { c.silent, hidden, c.all = false, c.all, nil })
	if _, err := d.Start(t.Context(), spec("vk-1")); err == nil || machine.RefusalOf(err) != 0 {
		t.Errorf("while lists lack the server: %v", err)
	}
	c.set(func() { c.all = hidden })
	first, err := d.Start(t.Context(), spec("vk-1"))
	if err != nil {
		t.Fatal(err)
	}
	if again, err := d.Start(t.Context(), spec("vk-1")); err != nil || again.ID != first.ID {
		t.Errorf("the same again: %s, %v", again.ID, err)
	}
	for _, token := range []string{"vk-", "VK-1"} {
		if other, err := d.Start(t.Context(), spec(token)); err != nil || other.ID == first.ID {
			t.Errorf("%s is a token like another: %s, %v", token, other.ID, err)
		}
	}
	c.set(func() {
		if c.creates != 3 {
			t.Errorf("%d creates, want one for each token", c.creates)
		}
	})
	d.mu.Lock()
	d.asked["vk-3"] = time.Now().Add(-lostFor)
	d.mu.Unlock()
	if _, err := d.Start(t.Context(), spec("vk-3")); err != nil {
		t.Errorf("a create without an answer is not repeated after %s: %v", lostFor, err)
	}
}

// TestNovaLoginThatFailsTellsNothingOfServers: Keystone answers 404 for a deleted application credential. No server counts as gone.
func TestNovaLoginThatFailsTellsNothingOfServers(t *testing.T) {
	d, c := start(t, Config{})
	m, err := d.Start(t.Context(), spec("vk-1"))
	if err != nil {
		t.Fatal(err)
	}
	fresh, err := New(d.config, d.port)
	if err != nil {
		t.Fatal(err)
	}
	c.set(func() { c.noCredential, c.tokens = true, c.tokens+1 }) // and the token of d is revoked
	for name, of := range map[string]*Driver{"the first login": fresh, "a login after a revoked token": d} {
		if _, _, err := of.Describe(t.Context(), m.ID); err == nil || errdefs.IsNotFound(err) || !strings.Contains(err.Error(), "look at the credentials") {
			t.Errorf("%s: the server is described with the error %v", name, err)
		}
		if err := of.Stop(t.Context(), m.ID); err == nil || errdefs.IsNotFound(err) {
			t.Errorf("%s: the server is stopped with the error %v", name, err)
		}
	}
}

// TestNovaWithoutAHost: Nova takes a server and then finds no host for it. The driver deletes the server, and the provider tries another type.
func TestNovaWithoutAHost(t *testing.T) {
	d, c := start(t, Config{})
	c.set(func() { c.full = []string{"1"} })
	if _, err := d.Start(t.Context(), spec("vk-1")); machine.RefusalOf(err) != machine.NoCapacity {
		t.Errorf("got %v, want no capacity", err)
	}
	c.set(func() {
		if task := c.all[0].object["OS-EXT-STS:task_state"]; task != "deleting" {
			t.Errorf("the server without a host is left: %v", task)
		}
	})
	if _, err := d.Start(t.Context(), spec("vk-1")); machine.RefusalOf(err) != machine.Throttled {
		t.Errorf("while Nova deletes the server: %v", err)
	}
	s := spec("vk-2")
	s.Type.Name = "m1.large"
	if m, err := d.Start(t.Context(), s); err != nil || m.Type != "m1.large" {
		t.Errorf("another type: %+v, %v", m, err)
	}
	c.set(func() {
		c.refuse["DELETE servers/"+c.all[0].object["id"].(string)] = answer{status: 500, kind: "computeFault"}
	})
	c.set(func() { c.all[0].object["OS-EXT-STS:task_state"] = nil })
	if _, err := d.Start(t.Context(), spec("vk-1")); err == nil || machine.RefusalOf(err) != 0 {
		t.Errorf("the server cannot be deleted, and costs money: %v", err)
	}
}

// TestNovaListHasAllPages: a list has the servers of this node on all pages, or is an error. The driver takes a new token when the old one ends.
func TestNovaListHasAllPages(t *testing.T) {
	d, c := start(t, Config{})
	for n := range 5 {
		s := spec("vk-" + strconv.Itoa(n))
		if n == 4 {
			s.Tags["vk-node"] = "other"
		}
		if _, err := d.Start(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	c.set(func() { c.page = 2; c.tokens++ })
	mine := map[string]string{"vk-cluster": "home", "vk-node": "vk"}
	all, err := d.List(t.Context(), mine)
	if err != nil || len(all) != 4 {
		t.Fatalf("got %+v, %v", all, err)
	}
	id := all[0].ID
	if err := d.Tag(t.Context(), id, map[string]string{"vk-uid": "u", "Name": strings.Repeat("n", 300)}); err != nil {
		t.Error(err)
	}
	mine["vk-uid"] = "u"
	if some, err := d.List(t.Context(), mine); err != nil || len(some) != 1 || some[0].ID != id {
		t.Errorf("the server of a pod: %+v, %v", some, err)
	}
	if _, found, err := d.Describe(t.Context(), "none"); found || err != nil {
		t.Errorf("a missing server: %t, %v", found, err)
	}
	if text, err := d.Console(t.Context(), id); text != "booted" || err != nil {
		t.Errorf("the console: %q, %v", text, err)
	}
	if err := d.Stop(t.Context(), id); err != nil {
		t.Error(err)
	}
	if m, _, err := d.Describe(t.Context(), id); err != nil || m.State != machine.Stopping {
		t.Errorf("the stopped server: %+v, %v", m, err)
	}
	if err := d.Stop(t.Context(), "none"); !errdefs.IsNotFound(err) {
		t.Errorf("stop a missing server: %v", err)
	}
	c.set(func() { c.refuse["GET servers/detail"] = answer{status: 503, kind: "serviceUnavailable"} })
	if all, err := d.List(t.Context(), mine); err == nil || all != nil {
		t.Errorf("an outage is a list of %d", len(all))
	}
}

// TestNovaFindsFlavorsOnAllPages: a machine gets its flavor from a later page of the list.
func TestNovaFindsFlavorsOnAllPages(t *testing.T) {
	d, c := start(t, Config{})
	c.set(func() { c.page = 1 })
	s := spec("vk-1")
	s.Type.Name = "m1.large"
	if m, err := d.Start(t.Context(), s); err != nil || m.Type != "m1.large" {
		t.Errorf("got %+v, %v", m, err)
	}
	s = spec("vk-2")
	s.Type.Name = "none"
	if _, err := d.Start(t.Context(), s); machine.RefusalOf(err) != machine.Denied {
		t.Errorf("a missing flavor: %v", err)
	}
}

// TestNovaStates: a machine has the state of its server and its fixed address. A server that has powered itself off is gone, because the node must delete it.
func TestNovaStates(t *testing.T) {
	d, c := start(t, Config{})
	m, err := d.Start(t.Context(), spec("vk-1"))
	if err != nil {
		t.Fatal(err)
	}
	c.set(func() {
		c.all[0].object["addresses"] = object{"net": []object{
			{"addr": "fd00::5", "version": 6, "OS-EXT-IPS:type": "fixed"}, {"addr": "203.0.113.5", "version": 4, "OS-EXT-IPS:type": "floating"},
			{"addr": "10.0.0.5", "version": 4, "OS-EXT-IPS:type": "fixed"},
		}}
	})
	for status, want := range map[string]machine.State{
		"BUILD": machine.Starting, "ACTIVE": machine.Running, "SHUTOFF": machine.Gone, "ERROR": machine.Gone, "DELETED": machine.Gone, "PAUSED": machine.Unknown, "NEW": machine.Unknown,
	} {
		c.set(func() { c.all[0].object["status"] = status })
		got, _, err := d.Describe(t.Context(), m.ID)
		if err != nil || got.State != want || got.Address != "10.0.0.5:6421" || got.IP != "10.0.0.5" {
			t.Errorf("%s: got %+v, %v, want state %d", status, got, err, want)
		}
	}
}

// TestNovaRefusals: each response determines whether a server may exist, and the next action of the provider. The error has no secret of the request.
func TestNovaRefusals(t *testing.T) {
	d, c := start(t, Config{})
	for _, r := range []struct {
		answer
		want machine.Refusal
	}{
		{answer{403, "forbidden", "Quota exceeded for cores: Requested 2, but already used 19 of 20 cores", 0}, machine.Quota},
		{answer{413, "overLimit", "too large", 0}, machine.Quota},
		{answer{403, "forbidden", "Policy doesn't allow os_compute_api:servers:create to be performed.", 0}, machine.Denied},
		{answer{400, "badRequest", "Invalid imageRef provided.", 0}, machine.Denied},
		{answer{429, "overLimit", "slow down", 7}, machine.Throttled},
		{answer{409, "conflictingRequest", "wait", 0}, machine.Throttled},
		{answer{500, "computeFault", "Unexpected API Error.", 0}, 0},
	} {
		c.set(func() { c.refuse["POST servers"] = r.answer })
		s := spec("vk-" + strconv.Itoa(r.status) + "-" + r.kind)
		_, err := d.Start(t.Context(), s)
		if err == nil || machine.RefusalOf(err) != r.want || errdefs.IsInvalidInput(err) || !strings.Contains(err.Error(), r.message) {
			t.Errorf("%d %s: got %v of kind %d, want kind %d", r.status, r.message, err, machine.RefusalOf(err), r.want)
		}
		if after, _ := errdefs.RetryAfterOf(err); after != time.Duration(r.after)*time.Second {
			t.Errorf("%d: wait %s, want %d s", r.status, after, r.after)
		}
		if err != nil && strings.Contains(err.Error(), base64.StdEncoding.EncodeToString(s.UserData)) {
			t.Errorf("the error has the user data: %v", err)
		}
	}
	s := spec("vk-1")
	s.Type.Name = "m9.none"
	if _, err := d.Start(t.Context(), s); machine.RefusalOf(err) != machine.Denied || !strings.Contains(err.Error(), "m9.none") {
		t.Errorf("a flavor that the project has not: %v", err)
	}
	c.set(func() {
		if c.creates != 0 {
			t.Errorf("%d creates", c.creates)
		}
	})
}
