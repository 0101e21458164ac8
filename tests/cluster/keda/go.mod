// The one place that says which KEDA is tested: it is built within its own module, as its authors build it.
module keda

go 1.26.0

require github.com/kedacore/keda/v2 v2.21.0
