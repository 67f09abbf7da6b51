package revision

const (
	serviceLabel      = "ome.io/inferenceservice"
	componentLabel    = "component"
	managedByLabel    = "ome.io/managed-by"
	managedByValue    = "OMENative"
	pairingAnnotation = "ome.io/pairing-protocol"
)
