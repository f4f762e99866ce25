// Writes and asks as programs with npm's client `influx` do; Node-RED's nodes for InfluxDB 1.x are made of it.
const {InfluxDB, FieldType} = require('influx');

async function main() {
  const fields = {v: FieldType.FLOAT, n: FieldType.INTEGER, on: FieldType.BOOLEAN, s: FieldType.STRING};
  const schema = [{measurement: 'from_node', tags: ['device'], fields}];
  const client = new InfluxDB({
    host: 'localhost', port: Number(process.argv[2]), database: 'node', username: 'any', password: 'none', schema});
  await client.createDatabase('node');
  console.log('online:', (await client.ping(5000))[0].online);
  const points = [0, 1].map(i => ({
    measurement: 'from_node', tags: {device: 'p i'}, fields: {v: i * 1.5, n: i, on: i === 1, s: `row "${i}", \\`},
    timestamp: new Date(1700000000000 + i)}));
  await client.writePoints(points, {precision: 'ms'});
  const rows = await client.query('SELECT v, n, "on", s FROM from_node GROUP BY device');
  for (const {time, ...rest} of rows) console.log(JSON.stringify(rest), 'at', time.getNanoTime());
  const [group] = rows.groups();
  console.log('groups:', group.name, JSON.stringify(group.tags), group.rows.length);
  const [sums, counts] = await client.query(['SELECT sum(v) FROM from_node', 'SELECT count(n) FROM from_node']);
  console.log('two:', sums[0].sum, counts[0].count);
  const asked = await client.query('SELECT v FROM from_node WHERE device = $d', {placeholders: {d: 'p i'}});
  console.log('placeholder:', asked.length);
  const databases = await client.getDatabaseNames();
  const [policy] = await client.showRetentionPolicies('node');
  console.log('names:', ...await client.getMeasurements(), ...await client.getSeries(),
              databases.find(name => name === 'node'), policy.name);
  await client.query('SELECT').catch(error => console.log(String(error).split(',')[0]));
}

main().catch(error => {
  console.error(error);
  process.exit(1);
});
