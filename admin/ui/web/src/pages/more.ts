// Pages that are loaded after the first ones.

export { Objects } from './objects.tsx'
export { ObjectPage } from './object.tsx'
export { FlowControl } from './flow.tsx'
export { Cluster } from './cluster.tsx'
export { SQL } from './sql.tsx'
export { Jobs } from './jobs.tsx'
export { Settings } from './settings.tsx'
export { Bundle } from './bundle.tsx'
export { ServicePage } from './service.tsx'
export { DeploymentPage } from './deployment.tsx'
export { Events, KafkaClusters } from './events.tsx'
