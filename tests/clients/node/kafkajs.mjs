// The client matrix with KafkaJS. Its codecs other than gzip are plugged in, as its documentation says.

import { createRequire } from 'node:module'
import { zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import kafkajs from 'kafkajs'
import snappy from 'kafkajs-snappy'
import lz4 from 'lz4-napi'
import { main, until } from './scenario.mjs'

const { CompressionCodecs, CompressionTypes, ConfigResourceTypes, Kafka, logLevel } = kafkajs
const TYPES = {
  none: CompressionTypes.None,
  gzip: CompressionTypes.GZIP,
  snappy: CompressionTypes.Snappy,
  lz4: CompressionTypes.LZ4,
  zstd: CompressionTypes.ZSTD
}
CompressionCodecs[TYPES.snappy] = snappy
CompressionCodecs[TYPES.lz4] = () => ({
  compress: async encoder => lz4.compressFrameSync(encoder.buffer),
  decompress: async buffer => lz4.decompressFrameSync(buffer)
})
CompressionCodecs[TYPES.zstd] = () => ({
  compress: async encoder => zstdCompressSync(encoder.buffer),
  decompress: async buffer => zstdDecompressSync(buffer)
})

/** Headers are an object of values or lists of values. */
function headersIn (pairs) {
  const found = {}
  for (const [name, value] of pairs) (found[name] ??= []).push(value)
  return found
}

const headersOut = found => Object.entries(found).flatMap(([name, values]) => [values].flat().map(value => [name, value]))

class Member {
  seen = new Set()
  #partitions = []
  #next = new Map()

  static async start (kafka, group, topic) {
    const member = new Member()
    const consumer = kafka.consumer({ groupId: group, sessionTimeout: 6000, heartbeatInterval: 300, maxWaitTimeInMs: 100, rebalanceTimeout: 6000 })
    member.consumer = consumer
    member.topic = topic
    consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => { member.#partitions = payload.memberAssignment[topic] ?? [] })
    await consumer.connect()
    await consumer.subscribe({ topics: [topic], fromBeginning: true })
    await consumer.run({
      autoCommit: false,
      eachMessage: async ({ partition, message }) => {
        member.seen.add(`${partition}:${message.offset}`)
        member.#next.set(partition, `${Number(message.offset) + 1}`)
      }
    })
    return member
  }

  assigned () {
    return this.#partitions
  }

  commit () {
    const mine = [...this.#next].filter(([partition]) => this.#partitions.includes(partition))
    return this.consumer.commitOffsets(mine.map(([partition, offset]) => ({ topic: this.topic, partition, offset })))
  }

  close () {
    return this.consumer.disconnect()
  }
}

class Library {
  version = createRequire(import.meta.url)('kafkajs/package.json').version
  nullHeaders = false
  #readers = 0

  constructor (bootstrap) {
    this.kafka = new Kafka({ clientId: 'matrix', brokers: [bootstrap], logLevel: logLevel.ERROR })
    this.admin = this.kafka.admin()
  }

  async produce (topic, codec, records, { idempotent = false, partition = 0 } = {}) {
    const producer = this.kafka.producer({ idempotent, maxInFlightRequests: 1 })
    await producer.connect()
    const messages = records.map(({ key, value, headers }) => ({ partition, key, value, headers: headersIn(headers) }))
    await producer.send({ topic, compression: TYPES[codec], messages })
    await producer.disconnect()
  }

  /** There is no reading without a group: each call has a group of its own, which is deleted at its end. */
  async read (topic, count, { offset, timestamp } = {}) {
    if (timestamp !== undefined) offset = (await this.admin.fetchTopicOffsetsByTimestamp(topic, timestamp))[0].offset
    const groupId = `${topic}-reader-${++this.#readers}`
    const consumer = this.kafka.consumer({ groupId, maxWaitTimeInMs: 100, maxBytesPerPartition: 6_000_000 })
    const found = []
    await consumer.connect()
    await consumer.subscribe({ topics: [topic], fromBeginning: true })
    await consumer.run({
      autoCommit: false,
      eachMessage: async ({ message }) => {
        // What came before the seek took effect.
        if (found.length === 0 && offset !== undefined && Number(message.offset) < Number(offset)) return
        found.push({ offset: Number(message.offset), key: message.key, value: message.value, headers: headersOut(message.headers) })
      }
    })
    if (offset !== undefined) consumer.seek({ topic, partition: 0, offset: `${offset}` })
    await until(`${count} records`, () => found.length >= count)
    await consumer.disconnect()
    await this.admin.deleteGroups([groupId])
    return found.slice(0, count)
  }

  member (group, topic) {
    return Member.start(this.kafka, group, topic)
  }

  createTopic (topic, numPartitions) {
    return this.admin.createTopics({ topics: [{ topic, numPartitions, replicationFactor: 1 }] })
  }

  topics () {
    return this.admin.listTopics()
  }

  async partitions (topic) {
    return (await this.admin.fetchTopicMetadata({ topics: [topic] })).topics[0].partitions.length
  }

  deleteTopic (topic) {
    return this.admin.deleteTopics({ topics: [topic] })
  }

  async config (topic, key) {
    const { resources } = await this.admin.describeConfigs({ resources: [{ type: ConfigResourceTypes.TOPIC, name: topic }] })
    return resources[0].configEntries.find(entry => entry.configName === key).configValue
  }

  async groups () {
    return (await this.admin.listGroups()).groups.map(group => group.groupId)
  }

  async groupState (group) {
    return (await this.admin.describeGroups([group])).groups[0].state
  }

  deleteGroup (group) {
    return this.admin.deleteGroups([group])
  }

  deleteRecords (topic, offset) {
    return this.admin.deleteTopicRecords({ topic, partitions: [{ partition: 0, offset: `${offset}` }] })
  }
}

await main(async bootstrap => {
  const library = new Library(bootstrap)
  await library.admin.connect()
  return library
})
