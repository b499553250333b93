// Reads {keywords, schemas: {name: schema}, documents: {name: [document, …]}} from standard input, compiles each
// schema with ajv in strict mode, and prints for each name {error} or {results: [{path, keyword} or null, …]}.
const { default: Ajv } = require('ajv')
const { default: addFormats } = require('ajv-formats')

const asked = JSON.parse(require('node:fs').readFileSync(0, 'utf8'))
const answers = {}
for (const [name, schema] of Object.entries(asked.schemas)) {
  const ajv = new Ajv({ strict: true, allErrors: true, logger: false })
  addFormats(ajv)
  for (const keyword of asked.keywords) ajv.addKeyword(keyword)
  try {
    const validate = ajv.compile(schema)
    const results = (asked.documents[name] ?? []).map((document) =>
      validate(document)
        ? null
        : validate.errors.map(({ instancePath, keyword, params }) => ({
            path: [instancePath, ...[params.additionalProperty ?? []].flat()].join('/'),
            keyword,
          })),
    )
    answers[name] = { results }
  } catch (error) {
    answers[name] = { error: String(error.message) }
  }
}
process.stdout.write(JSON.stringify(answers))
