// Compiles what it is given on stdin, as clients in JavaScript do: patterns with the flag u, schemas with Ajv,
// strict; and validates samples. Prints how many of each it took, and every error.
import { readFileSync } from "node:fs";
import { Ajv } from "ajv";
import { Ajv2020 } from "ajv/dist/2020.js";

const given = JSON.parse(readFileSync(0, "utf8"));
const errors = [];
const counts = { patterns: 0, inputs: 0, outputs: 0, samples: 0 };

function attempt(kind, name, run) {
  try {
    run();
    counts[kind] += 1;
  } catch (error) {
    errors.push(`${kind} ${name}: ${error.message}`);
  }
}

for (const pattern of given.patterns) attempt("patterns", pattern, () => new RegExp(pattern, "u"));

for (const kind of ["inputs", "outputs"]) {
  for (const [name, schema] of Object.entries(given[kind])) {
    attempt(kind, name, () => {
      for (const Compiler of [Ajv, Ajv2020]) {
        const ajv = new Compiler({ strict: true, strictRequired: kind === "inputs", strictTypes: true });
        const validate = ajv.compile(schema);
        for (const [value, fits] of given.samples[kind][name] ?? []) {
          if (validate(value) !== fits) throw new Error(`${JSON.stringify(value)} ${ajv.errorsText(validate.errors)}`);
          counts.samples += 1;
        }
      }
    });
  }
}

process.stdout.write(JSON.stringify({ counts, errors }));
