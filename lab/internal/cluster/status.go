package cluster

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"sort"
	"strconv"
	"strings"
	"sync"
	"text/tabwriter"

	"k8s.io/client-go/kubernetes"

	"ome.io/ome/lab/internal/pki"
)

// Row is one line of `status`.
type Row struct {
	Component string         `json:"component"`
	PID       int            `json:"pid,omitempty"`
	Ports     map[string]int `json:"ports,omitempty"`
	Restarts  int            `json:"restarts"`
	Health    string         `json:"health"`
	OK        bool           `json:"ok"`
}

// Report is what `status` shows.
type Report struct {
	Dir    string `json:"dir"`
	Phase  Phase  `json:"phase"`
	Server string `json:"server"`
	Rows   []Row  `json:"components"`
}

// Healthy reports whether everything works.
func (r Report) Healthy() bool {
	for _, row := range r.Rows {
		if !row.OK {
			return false
		}
	}
	return r.Phase == Ready
}

// Status asks each component of a running lab how it is.
func (l Layout) Status(ctx context.Context) (Report, error) {
	st, err := l.LoadRunning()
	if err != nil {
		return Report{}, err
	}
	rep := Report{Dir: l.Dir, Phase: st.Phase, Server: st.Server, Rows: make([]Row, len(st.Components))}
	admin, ca, err := l.admin(st)
	if err != nil {
		return Report{}, err
	}
	cert, err := tls.X509KeyPair(admin.Pair.Cert, admin.Pair.Key)
	if err != nil {
		return Report{}, fmt.Errorf("load the admin certificate: %w", err)
	}
	client := healthClient(ca, cert)
	var wg sync.WaitGroup
	for i, c := range st.Components {
		wg.Go(func() {
			row := Row{Component: c.Name, PID: c.PID, Ports: c.Ports, Restarts: c.Restarts}
			switch {
			case c.Stopped && !c.Alive():
				row.PID, row.Health = 0, "stopped"
			case !c.Alive():
				row.PID, row.Health = 0, "not running"
			default:
				if err := probe(ctx, client, c.Health); err != nil {
					row.Health = strings.ReplaceAll(err.Error(), "\n", " ")
				} else {
					row.Health, row.OK = "ok", true
				}
			}
			rep.Rows[i] = row
		})
	}
	nodes := Row{Component: "nodes", PID: st.Supervisor.PID}
	if cs, err := kubernetes.NewForConfig(admin.REST()); err != nil {
		nodes.Health = err.Error()
	} else if ready, total, err := readyNodes(ctx, cs); err != nil {
		nodes.Health = err.Error()
	} else {
		nodes.Health = fmt.Sprintf("%d/%d ready", ready, total)
		nodes.OK = ready == total && total >= st.Nodes
	}
	wg.Wait()
	rep.Rows = append(rep.Rows, nodes)
	return rep, nil
}

// Print writes the report as a table.
func (r Report) Print(out io.Writer) error {
	fmt.Fprintf(out, "lab in %s is %s at %s\n", r.Dir, r.Phase, r.Server)
	w := tabwriter.NewWriter(out, 0, 8, 3, ' ', 0)
	fmt.Fprintln(w, "COMPONENT\tPID\tPORTS\tRESTARTS\tHEALTH")
	for _, row := range r.Rows {
		var ports []string
		for name, port := range row.Ports {
			ports = append(ports, name+"="+strconv.Itoa(port))
		}
		sort.Strings(ports)
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\n", row.Component, dash(row.PID), orDash(strings.Join(ports, ",")), row.Restarts, row.Health)
	}
	return w.Flush()
}

func dash(n int) string {
	if n == 0 {
		return "-"
	}
	return strconv.Itoa(n)
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func (l Layout) admin(st *State) (pki.Kubeconfig, *pki.CA, error) {
	ca, err := pki.LoadCA(l.pki())
	if err != nil {
		return pki.Kubeconfig{}, nil, err
	}
	pair, err := pki.LoadPair(l.pki(), "admin")
	if err != nil {
		return pki.Kubeconfig{}, nil, err
	}
	return pki.Kubeconfig{Server: st.Server, CA: ca.Cert, User: "ome-lab-admin", Pair: pair}, ca, nil
}

// UserKubeconfig issues a client certificate and returns a kubeconfig with it; without a user it is the set-up admin's.
func (l Layout) UserKubeconfig(user string, groups []string) ([]byte, error) {
	st, err := l.LoadRunning()
	if err != nil {
		return nil, err
	}
	k, ca, err := l.admin(st)
	if err != nil {
		return nil, err
	}
	if user != "" {
		pair, err := ca.Client(user, groups...)
		if err != nil {
			return nil, err
		}
		k.User, k.Pair = user, pair
	}
	return k.Bytes()
}
