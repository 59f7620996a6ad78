// SPDX-License-Identifier: Apache-2.0

package slurm

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// restScript is script with its arguments in the environment: no form of arguments works in all versions of
// slurmrestd.
const restScript = scriptBegin + "\"$VK_JOB_PROGRAM\"" + scriptRun + "\"$VK_JOB_DIR\"\n"

// restField is the field of a slurmrestd job for a flag of sbatch.
type restField struct {
	name string
	read func(string) (any, error)
}

func asText(s string) (any, error) {
	if s == "" {
		return nil, errors.New("want a value")
	}
	return s, nil
}

func asNumber(s string) (any, error) { return strconv.Atoi(s) }
func asMegabytes(s string) (any, error) {
	return strconv.Atoi(strings.TrimSuffix(s, "M"))
}

// asMinutes reads a time as sbatch does, and rounds it up: minutes, minutes:seconds, hours:minutes:seconds, or with days before as in days-hours.
func asMinutes(s string) (any, error) {
	days, clock, hasDays := strings.Cut(s, "-")
	if !hasDays {
		days, clock = "0", s
	}
	parts := append([]string{days}, strings.Split(clock, ":")...)
	seconds := map[bool]map[int][]int{false: {2: {86400, 60}, 3: {86400, 60, 1}, 4: {86400, 3600, 60, 1}}, true: {2: {86400, 3600}, 3: {86400, 3600, 60}, 4: {86400, 3600, 60, 1}}}
	of, ok := seconds[hasDays][len(parts)]
	if !ok {
		return nil, errors.New("want a time as in 30, 1:00:00 or 1-12")
	}
	total := 0
	for i, part := range parts {
		n, err := strconv.ParseUint(part, 10, 31)
		if err != nil {
			return nil, err
		}
		total += int(n) * of[i]
	}
	return (total + 59) / 60, nil
}

// always returns v for a flag without a value. With a value, the flag has a meaning for which there is no field.
func always(v any) func(string) (any, error) {
	return func(s string) (any, error) {
		if s != "" {
			return nil, errors.New("want no value")
		}
		return v, nil
	}
}

// restFields are the supported flags: the flags that the provider sets, and the flags of pods that have a field.
var restFields = map[string]restField{
	"--job-name": {"name", asText}, "--comment": {"comment", asText}, "--output": {"standard_output", asText}, "--open-mode": {"open_mode", asText},
	"--chdir": {"current_working_directory", asText}, "--nodes": {"nodes", func(s string) (any, error) { n, err := strconv.Atoi(s); return []int{n, n}, err }},
	"--ntasks": {"tasks", asNumber}, "--cpus-per-task": {"cpus_per_task", asNumber}, "--mem": {"memory_per_node", asMegabytes}, "--partition": {"partition", asText},
	"--account": {"account", asText}, "--qos": {"qos", asText}, "--time": {"time_limit", asMinutes}, "--gres": {"gres", asText}, "--no-requeue": {"requeue", always(false)},
	"--parsable":   {"", nil},
	"--constraint": {"constraints", asText}, "--prefer": {"prefer", asText}, "--nice": {"nice", asNumber}, "--reservation": {"reservation", asText}, "--licenses": {"licenses", asText},
	"--hold": {"hold", always(true)}, "--wckey": {"wckey", asText}, "--priority": {"priority", asText}, "--gres-flags": {"gres_flags", asText},
	"--threads-per-core": {"threads_per_core", asNumber}, "--gpu-freq": {"gpu_frequency", asText}, "--time-min": {"time_minimum", asMinutes},
}

// restJob converts a command line of sbatch to a job of slurmrestd.
func restJob(args []string) (map[string]any, error) {
	end := slices.Index(args, endOfFlags)
	if end < 0 || len(args) != end+4 {
		return nil, errors.New("sbatch has no script")
	}
	flags, program, dir := args[:end], args[end+2], args[end+3]
	job := map[string]any{"environment": map[string]string{
		"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "VK_JOB_PROGRAM": program, "VK_JOB_DIR": dir,
	}}
	for _, flag := range flags {
		name, value, _ := strings.Cut(flag, "=")
		f, ok := restFields[name]
		if !ok {
			return nil, errdefs.InvalidInputf("%s: %s: slurmrestd has nothing for it", flagsPath, name)
		}
		if f.read == nil {
			continue
		}
		v, err := f.read(value)
		if err != nil {
			return nil, errdefs.InvalidInputf("%s: %s: %q cannot be said to slurmrestd: %v", flagsPath, name, value, err)
		}
		job[f.name] = v
	}
	return job, nil
}

func (r *rest) submit(ctx context.Context, args []string) (int, error) {
	job, err := restJob(args)
	if err != nil {
		return 0, err
	}
	var out struct {
		ID int `json:"job_id"`
	}
	err = r.call(ctx, "sbatch", http.MethodPost, "/job/submit", map[string]any{"script": restScript, "job": job}, &out)
	if out.ID > 0 {
		return out.ID, nil // with an ID, the error is only a reason to wait, for example drained nodes
	}
	if err == nil {
		err = r.without("sbatch", "job_id")
	}
	return 0, err
}

func (r *rest) jobs(ctx context.Context, more ...string) ([]queued, error) {
	var out struct {
		Jobs *[]struct {
			ID       int    `json:"job_id"`
			State    string `json:"job_state"`
			Reason   string `json:"state_reason"`
			Name     string `json:"name"`
			Host     string `json:"batch_host"`
			Submit   int64  `json:"submit_time"`
			Start    int64  `json:"start_time"`
			Comment  string `json:"comment"`
			UserID   *int   `json:"user_id"`
			UserName string `json:"user_name"`
			Array    *int   `json:"array_task_id"`
		} `json:"jobs"`
	}
	if err := r.call(ctx, "squeue", http.MethodGet, "/jobs", nil, &out); err != nil {
		return nil, err
	}
	if out.Jobs == nil {
		return nil, r.without("squeue", "jobs")
	}
	name := ""
	for _, flag := range more {
		name = strings.TrimPrefix(flag, "--name=")
	}
	var all []queued
	for _, j := range *out.Jobs {
		if j.ID <= 0 {
			return nil, r.without("squeue", "job_id")
		}
		own := j.UserName == r.user || j.UserID != nil && *j.UserID == r.uid
		if j.Array != nil || name != "" && j.Name != name || !own && !strings.HasPrefix(j.Name, jobName("")) {
			continue
		}
		if !own && nameless(j.UserName, j.UserID) {
			return nil, fmt.Errorf("slurmrestd: squeue: whose job %d (%s) is cannot be told, its user is %q: look whether the machine of slurmrestd knows user %s", j.ID, j.Name, j.UserName, r.user)
		}
		if !own {
			continue
		}
		all = append(all, queued{
			ID: j.ID, State: j.State, Reason: j.Reason, Name: j.Name, Host: j.Host, Submitted: moment(j.Submit), Started: moment(j.Start), Comment: j.Comment,
		})
	}
	return all, nil
}

// nobody is the user ID of the real user nobody.
const nobody = 65534

// nameless reports whether slurmrestd could not find the name of a user.
func nameless(user string, uid *int) bool {
	_, err := strconv.Atoi(user)
	return user == "" || err == nil || user == "nobody" && (uid == nil || *uid != nobody)
}

// cancel cancels jobs. A job that must end only while it waits is held first: a held job does not begin any
// more. slurmrestd cannot signal a batch script alone, and a signal to all processes would end the containers,
// so jobs look for stop orders themselves.
func (r *rest) cancel(ctx context.Context, ids []int, more ...string) error {
	if slices.Contains(more, tellBatch) {
		return nil
	}
	var failed error
	if slices.Contains(more, whilePending) {
		if ids, failed = r.hold(ctx, ids); len(ids) == 0 {
			return failed
		}
	}
	_, err := each(ids, func(id int) error {
		if err := r.call(ctx, "scancel", http.MethodDelete, jobPath(id), nil, nil); err != nil && !gone(err) {
			return err
		}
		return nil
	})
	return errors.Join(failed, err)
}

func jobPath(id int) string { return "/job/" + strconv.Itoa(id) }

// hold holds waiting jobs, and returns the held jobs. Jobs that began meanwhile continue, and stop by their
// files.
func (r *rest) hold(ctx context.Context, ids []int) (held []int, err error) {
	held, failed := each(ids, func(id int) error {
		return r.call(ctx, "scontrol hold", http.MethodPost, jobPath(id), map[string]any{"hold": true}, nil)
	})
	if len(held) == 0 {
		return nil, failed
	}
	all, err := r.jobs(ctx) // after the hold: before it, a waiting job may begin at any time
	if err != nil {
		return nil, errors.Join(failed, err)
	}
	return slices.DeleteFunc(held, func(id int) bool {
		return !slices.ContainsFunc(all, func(q queued) bool { return q.ID == id && q.State == "PENDING" })
	}), failed
}

// each calls do for each job, several at a time, and returns the jobs for which it succeeded.
func each(ids []int, do func(id int) error) (done []int, err error) {
	all := make([]error, len(ids))
	var requests errgroup.Group
	requests.SetLimit(restCalls)
	for i, id := range ids {
		requests.Go(func() error { all[i] = do(id); return nil })
	}
	_ = requests.Wait()
	for i, id := range ids {
		if all[i] == nil {
			done = append(done, id)
		}
	}
	return done, errors.Join(all...)
}

func (r *rest) cancelNamed(ctx context.Context, uids []types.UID) error {
	jobs, err := r.jobs(ctx)
	if err != nil {
		return err
	}
	var ids []int
	for _, q := range jobs {
		if uid, ok := strings.CutPrefix(q.Name, jobName("")); ok && ended[q.State] == "" && slices.Contains(uids, types.UID(uid)) {
			ids = append(ids, q.ID)
		}
	}
	return r.cancel(ctx, ids)
}

// accounted returns no states, because slurmrestd has the accounting in a different interface.
func (*rest) accounted(context.Context, []queued) (map[int]string, error) { return nil, nil }

func (r *rest) partition(ctx context.Context, name string) (machines []machine, up bool, err error) {
	var partitions struct {
		All *[]struct {
			Name  string   `json:"name"`
			State string   `json:"state"`
			Flags []string `json:"flags"`
		} `json:"partitions"`
	}
	var nodes struct {
		All *[]struct {
			Name       string   `json:"name"`
			CPUs       int64    `json:"cpus"`
			Memory     int64    `json:"real_memory"`
			State      string   `json:"state"`
			Flags      []string `json:"state_flags"`
			Gres       string   `json:"gres"`
			Partitions []string `json:"partitions"`
		} `json:"nodes"`
	}
	if err := r.call(ctx, "sinfo", http.MethodGet, "/partitions", nil, &partitions); err != nil {
		return nil, false, err
	}
	if partitions.All == nil {
		return nil, false, r.without("sinfo", "partitions")
	}
	if err := r.call(ctx, "sinfo", http.MethodGet, "/nodes", nil, &nodes); err != nil {
		return nil, false, err
	}
	if nodes.All == nil {
		return nil, false, r.without("sinfo", "nodes")
	}
	wanted := name
	for _, p := range *partitions.All {
		if p.Name == name || name == "" && slices.Contains(p.Flags, "default") {
			wanted, up = p.Name, p.State == "UP"
		}
	}
	for _, n := range *nodes.All {
		if !slices.Contains(n.Partitions, wanted) {
			continue
		}
		machines = append(machines, machine{name: n.Name, cpus: n.CPUs, megabyte: n.Memory, gpus: gpusOf(n.Gres), usable: usable(n.State) && !slices.ContainsFunc(n.Flags, unfit)})
	}
	if len(machines) == 0 {
		return nil, false, &refusedError{"sinfo", fmt.Sprintf("partition %q has no nodes, or is not there", name)}
	}
	return machines, up, nil
}

// unfit reports whether a node with that flag runs no jobs.
func unfit(flag string) bool {
	return slices.ContainsFunc([]string{"DRAIN", "FAIL", "INVALID", "MAINT", "NOT_RESPONDING", "NO_RESPOND", "POWERED_DOWN", "REBOOT"}, func(bad string) bool {
		return strings.Contains(strings.ToUpper(flag), bad)
	})
}
