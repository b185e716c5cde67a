import { readSources, RULES } from './house/rules.ts';
const s = readSources();
for (const r of RULES) for (const l of r.check(s)) console.log(r.name, '|', l);
