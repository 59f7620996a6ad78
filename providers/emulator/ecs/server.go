// SPDX-License-Identifier: Apache-2.0

package ecs

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	"github.com/virtual-kubelet/virtual-kubelet/providers/emulator"
)

// Config configures a server. Keys are required, and either Fleet or Runner.
type Config struct {
	// Fleet runs the containers. Default: a fleet of Runner, with the files of Objects. The reports of the
	// runner go to Server.Report.
	Fleet   *emulator.Fleet
	Runner  nodeutil.Provider
	Objects *emulator.Objects
	// Keys are the access keys of the server, by their IDs.
	Keys map[string]Key
	// Region and Account are in the ARNs. Default: eu-central-1 and 123456789012.
	Region, Account string
	// Clusters are the names of the clusters. Default: default.
	Clusters []string
	// LogGroups are the names of the log groups. Retention is the number of days after which their events end.
	// Default: events stay.
	LogGroups []string
	Retention map[string]int
	// Subnets, SecurityGroups and Roles are the IDs and names of existing resources. Nil means that all exist.
	Subnets, SecurityGroups, Roles []string
	// CapacityProviders are the names of the capacity providers of each cluster. Default: none, as in a cluster
	// that was made without.
	CapacityProviders []string
	// VCPUs is the maximum number of vCPUs of all tasks together. Default: 1000.
	VCPUs int
	// Revisions is the maximum number of revisions of a family of task definitions. Secrets is the maximum
	// number of secrets. Default: the quotas of the services, 1,000,000 and 500,000. Sources:
	// docs.aws.amazon.com: general/latest/gr/ecs-service.html and
	// secretsmanager/latest/userguide/reference_limits.html, 2026-11-28.
	Revisions, Secrets int
	// Lag is the time until a new task is visible.
	Lag time.Duration
	// Keep is the time for which a stopped task is visible. Default: an hour.
	Keep time.Duration
	// Quick makes a container with a restart policy start again after a run of any duration. The service starts a container again only if
	// it ran for its restartAttemptPeriod, which is at least a minute. Without Quick the server never starts a container again.
	Quick bool
	// Streams is the address of data channels: ws://host. Default: the address of the request.
	Streams string
	// Now is the clock of signatures; nil for the machine's.
	Now func() time.Time
}

// Server is the three services in one.
type Server struct {
	*emulator.Front

	config Config
	ctx    context.Context //nolint:containedctx // the life of tasks and sessions
	fleet  *emulator.Fleet

	mu          sync.Mutex
	definitions map[string][]*definition // guarded by mu; keyed by family
	tasks       map[string]*task         // guarded by mu; keyed by ID
	order       []string                 // guarded by mu; IDs in the order of starts
	tokens      map[string]*task         // guarded by mu; keyed by client token
	secrets     map[string]*secret       // guarded by mu; keyed by name
	streams     map[string]*stream       // guarded by mu; keyed by group and name
	sessions    map[string]*session      // guarded by mu; keyed by ID
	commands    int                      // guarded by mu; running commands of sessions
	stale       *listed                  // guarded by mu; the frozen content of lists; nil: lists are not frozen
	limits      map[string]*limit        // guarded by mu; keyed by operation
	queue       queue
	last        int // guarded by mu; number of the last created object
}

// New returns a server without tasks. Its tasks end with ctx.
func New(ctx context.Context, c Config) *Server {
	if c.Region == "" {
		c.Region = "eu-central-1"
	}
	if c.Account == "" {
		c.Account = "123456789012"
	}
	if c.Clusters == nil {
		c.Clusters = []string{"default"}
	}
	if c.Keep == 0 {
		c.Keep = time.Hour
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Revisions == 0 {
		c.Revisions = 1_000_000
	}
	if c.Secrets == 0 {
		c.Secrets = 500_000
	}
	if c.VCPUs == 0 {
		c.VCPUs = 1000
	}
	if c.Fleet == nil {
		c.Fleet = emulator.NewFleet(c.Runner, c.Objects, 0)
	}
	s := &Server{
		config: c, ctx: ctx, fleet: c.Fleet,
		definitions: map[string][]*definition{}, tasks: map[string]*task{}, tokens: map[string]*task{}, secrets: map[string]*secret{},
		streams: map[string]*stream{}, sessions: map[string]*session{}, limits: map[string]*limit{},
	}
	s.queue.more = make(chan struct{}, 1)
	s.Front = emulator.NewFront(func(r *http.Request, body []byte) string { _, name := requestTarget(r, body); return name }, http.HandlerFunc(s.serveRequest))
	return s
}

// services are the names of services in signatures and policies, by the first part of the target of a request.
var services = map[string]string{
	"AmazonEC2ContainerServiceV20141113": "ecs", "secretsmanager": "secretsmanager", "Logs_20140328": "logs", "AmazonSQS": "sqs", "ServiceQuotasV20190624": "servicequotas",
}

// requestTarget returns the service and the operation of a request.
func requestTarget(r *http.Request, body []byte) (service, operation string) {
	if strings.HasPrefix(r.URL.Path, channelPath) {
		return "ssmmessages", "OpenDataChannel"
	}
	if r.Header.Get("Content-Type") == formType {
		return formTarget(body)
	}
	prefix, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	return services[prefix], operation
}

// refusal is an error in an answer of the service.
type refusal struct{ code, message string }

func (r refusal) Error() string { return r.code + ": " + r.message }

// serveRequest answers a request without a fault.
func (s *Server) serveRequest(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, channelPath) {
		s.serveChannel(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	service, operation := requestTarget(r, body)
	out, err := s.answerRequest(r, service, operation, body)
	if r.Header.Get("Content-Type") == formType {
		answerXML(w, service, out, err)
		return
	}
	if err != nil {
		Refuse(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/x-amz-json-1.1")
	_ = json.NewEncoder(w).Encode(out)
}

// Refuse answers with an error, in the form of the services.
func Refuse(w http.ResponseWriter, err error) {
	said := refusal{code: "ServerException", message: err.Error()}
	status := http.StatusBadRequest
	if !errors.As(err, &said) {
		status = http.StatusInternalServerError
	}
	w.Header().Set("Content-Type", "application/x-amz-json-1.1")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"__type": said.code, "message": said.message})
}

// Throttled answers as the service does above its rate limit.
func Throttled(w http.ResponseWriter, _ *http.Request) {
	Refuse(w, refusal{"ThrottlingException", "Rate exceeded"})
}

func (s *Server) answerRequest(r *http.Request, service, operation string, body []byte) (out any, err error) {
	g := gate{keys: s.config.Keys, region: s.config.Region, now: s.config.Now}
	if service == "iam" { // IAM is in one region
		g.region = "us-east-1"
	}
	if code, message := g.refuseReason(r, body, service); code != "" {
		return nil, refusal{code, message}
	}
	_, rest, _ := strings.Cut(r.Header.Get("Authorization"), "Credential=")
	id, _, _ := strings.Cut(rest, "/")
	if err := s.checkPolicy(s.config.Keys[id], service, operation, body); err != nil {
		return nil, err
	}
	if r.Header.Get("Content-Type") == formType {
		if body, err = formBody(body); err != nil {
			return nil, refusal{"ValidationError", err.Error()}
		}
	}
	if err := Check(operation, body); err != nil {
		code := "ValidationException"
		if service == "ecs" || service == "logs" {
			code = "InvalidParameterException"
		}
		return nil, refusal{code, err.Error()}
	}
	if !s.spendRequest(operation) {
		return nil, refusal{"ThrottlingException", "Rate exceeded"}
	}
	if operation == "ReceiveMessage" { // the request waits for messages
		return s.receiveMessage(r.Context(), body)
	}
	if operation == "FilterLogEvents" { // the request asks the runner
		return s.filterLogEvents(r.Context(), body)
	}
	do := map[string]func([]byte) (any, error){
		"PutSecretValue": s.putSecretValue, "DeleteSecret": s.deleteSecret, "RestoreSecret": s.restoreSecret, "DeleteMessageBatch": s.deleteMessageBatch, "GetQueueAttributes": s.getQueueAttributes, "GetServiceQuota": s.getServiceQuota,
		"DescribeSubnets": s.describeSubnets, "DescribeSecurityGroups": s.describeSecurityGroups, "GetRole": s.getRole,
		"DescribeClusters": s.describeClusters, "RegisterTaskDefinition": s.registerTaskDefinition, "DescribeTaskDefinition": s.describeTaskDefinition,
		"DeregisterTaskDefinition": s.deregisterTaskDefinition, "DeleteTaskDefinitions": s.deleteTaskDefinitions,
		"ListTaskDefinitionFamilies": s.listTaskDefinitionFamilies, "ListTaskDefinitions": s.listTaskDefinitions, "ListSecrets": s.listSecrets,
		"RunTask": s.runTask, "StopTask": s.stopTask, "ListTasks": s.listTasks, "DescribeTasks": s.describeTasks, "ExecuteCommand": s.executeCommand,
		"CreateSecret": s.createSecret, "DescribeSecret": s.describeSecret, "GetSecretValue": s.getSecretValue, "GetLogEvents": s.getLogEvents, "DescribeLogGroups": s.describeLogGroups,
	}[operation]
	if do == nil {
		return nil, refusal{"UnknownOperationException", operation}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.config.Streams == "" {
		s.config.Streams = map[bool]string{true: "wss://", false: "ws://"}[r.TLS != nil] + r.Host
	}
	return do(body)
}

// checkPolicy refuses an action that is not in the policy of a key.
func (s *Server) checkPolicy(key Key, service, operation string, body []byte) error {
	needs := []string{service + ":" + strings.TrimSuffix(operation, "Batch")}
	if strings.Contains(string(body), `"tags":[`) || strings.Contains(string(body), `"Tags":[`) {
		needs = append(needs, service+":TagResource")
	}
	if operation == "RunTask" || operation == "RegisterTaskDefinition" {
		needs = append(needs, "iam:PassRole")
	}
	for _, action := range needs {
		if key.Allow != nil && !slices.Contains(key.Allow, action) {
			return refusal{"AccessDeniedException", "User: arn:aws:iam::" + s.config.Account + ":user/test is not authorized to perform: " + action + " because no identity-based policy allows the action"}
		}
	}
	return nil
}

// limit is a bucket of tokens.
type limit struct {
	rate, burst, have float64
	at                time.Time
}

// Limit limits the requests of an operation a second. burst is the maximum number at once.
func (s *Server) Limit(operation string, rate, burst float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limits[operation] = &limit{rate: rate, burst: burst, have: burst, at: time.Now()}
}

func (s *Server) spendRequest(operation string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.limits[operation]
	if l == nil {
		return true
	}
	now := time.Now()
	l.have = min(l.burst, l.have+l.rate*now.Sub(l.at).Seconds())
	l.at = now
	if l.have < 1 {
		return false
	}
	l.have--
	return true
}

// arnOf returns the ARN of a thing of a service.
func (s *Server) arnOf(service, of string) string {
	return "arn:aws:" + service + ":" + s.config.Region + ":" + s.config.Account + ":" + of
}

// clusterName returns the name of a cluster, and refuses an unknown one.
func (s *Server) clusterName(said string) (string, error) {
	if said == "" {
		said = "default"
	}
	name := said[strings.LastIndex(said, "/")+1:]
	if !slices.Contains(s.config.Clusters, name) {
		return "", refusal{"ClusterNotFoundException", "Cluster not found."}
	}
	return name, nil
}

func (s *Server) describeClusters(body []byte) (any, error) {
	var in struct{ Clusters []string }
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	clusters, failures := []any{}, []any{}
	for _, said := range in.Clusters {
		name, err := s.clusterName(said)
		if err != nil {
			failures = append(failures, map[string]string{"arn": s.arnOf("ecs", "cluster/"+said), "reason": "MISSING"})
			continue
		}
		clusters = append(clusters, map[string]any{
			"clusterName": name, "clusterArn": s.arnOf("ecs", "cluster/"+name), "status": "ACTIVE", "capacityProviders": append([]string{}, s.config.CapacityProviders...),
		})
	}
	return map[string]any{"clusters": clusters, "failures": failures}, nil
}

func lengthOf(body []byte) string { return strconv.Itoa(len(body)) }
