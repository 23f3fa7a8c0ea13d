// A CoreDNS with only the plug-ins that a cluster's DNS needs: the full build compiles the SDKs of
// several clouds for nothing.
package main

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"

	_ "github.com/coredns/coredns/plugin/bind"
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/forward"
	_ "github.com/coredns/coredns/plugin/health"
	_ "github.com/coredns/coredns/plugin/hosts"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/log"
	_ "github.com/coredns/coredns/plugin/ready"
	_ "github.com/coredns/coredns/plugin/reload"
)

func main() {
	// The order in which plug-ins see a query, as in CoreDNS's own plugin.cfg.
	dnsserver.Directives = []string{
		"reload", "bind", "health", "ready", "errors", "log", "cache", "hosts", "kubernetes", "forward",
	}
	coremain.Run()
}
