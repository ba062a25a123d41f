// Drives node-redis: the last argument is the package.
'use strict'
const name = process.argv[6]
const redis = require(name)
const { main } = require('./steps.js')

main(async ({ host, port, cluster, resp, tls, login }) => {
  const secure = tls ? { tls: true, ...tls } : {}
  const options = { socket: { host, port, ...secure }, ...login, ...(resp ? { RESP: resp } : {}) }
  // The defaults are for the nodes that the server names.
  const client = cluster
    ? redis.createCluster({ rootNodes: [options], defaults: { socket: secure, ...login }, ...(resp ? { RESP: resp } : {}) })
    : redis.createClient(options)
  client.on('error', () => {}) // told by the calls that fail
  await client.connect()
  const send = words => cluster ? client.sendCommand(undefined, false, words) : client.sendCommand(words)
  return {
    version: require(name + '/package.json').version,
    refused: redis.ErrorReply,
    call: send,
    // Calls of one turn of the event loop are sent together.
    pipeline: commands => Promise.all(commands.map(send)),
    close: () => (client.destroy ? client.destroy() : client.disconnect())
  }
})
