/** The DNS records to publish: purpose, type, name and value to copy, and the result of the last check. */
import { Code } from '@mantine/core';
import type { DomainDetails, DomainRecord } from '../../../src/operations/domains/schemas.ts';
import { Card } from '../parts/card';
import { CopyIcon } from '../parts/copyable';
import { TextWithCode } from '../parts/text-with-code';
import { KeyBadge, RecordBadge } from './domain-badge';

const PURPOSES: Readonly<Record<DomainRecord['purpose'], string>> = {
  dkim: 'DKIM',
  spf: 'SPF',
  dmarc: 'DMARC',
  'return-path': 'Return path',
  provider: 'Provider',
};

export function RecordTable({ domain: { domain, records } }: { readonly domain: DomainDetails }) {
  return (
    <Card title="Records to publish" secondary={`at the DNS provider of ${domain}`} flush>
      <table className="list records">
        <thead>
          <tr>
            {['Purpose', 'Type', 'Name', 'Value'].map((heading) => (
              <th key={heading} scope="col">
                {heading}
              </th>
            ))}
            <th scope="col" className="end">
              State
            </th>
          </tr>
        </thead>
        <tbody>
          {records.map((record) => (
            <Row key={`${record.type} ${record.name} ${record.value}`} record={record} />
          ))}
        </tbody>
      </table>
    </Card>
  );
}

function Row({ record }: { readonly record: DomainRecord }) {
  const { purpose, type, name, value, found, key, about } = record;
  const isPublished = type !== 'SES';
  return (
    <tr>
      <td className="fill">
        <div className="two-lines">
          <b>{PURPOSES[purpose]}</b>
          <span>
            <TextWithCode text={about} />
          </span>
        </div>
      </td>
      <td>
        <span className="category">{type}</span>
      </td>
      <td className="fill">{isPublished ? <CopyableCode value={name} label={`the name ${name}`} /> : null}</td>
      <td className="fill">
        {isPublished ? <CopyableCode value={value} label={`the value of ${name}`} /> : null}
        <CheckResult record={record} />
      </td>
      <td className="end">
        <div className="record-state">
          <RecordBadge found={found} />
          {key === null || key === 'active' ? null : <KeyBadge state={key} />}
        </div>
      </td>
    </tr>
  );
}

function CopyableCode({ value, label }: { readonly value: string; readonly label: string }) {
  return (
    <span className="copyable-code">
      <code className="inline-code" title={value}>
        {value}
      </code>
      <CopyIcon value={value} label={label} />
    </span>
  );
}

function CheckResult({ record: { found, detail, observed, type } }: { readonly record: DomainRecord }) {
  if (detail === null || (found === 'found' && type !== 'SES')) return null;
  return (
    <div className="record-result">
      <TextWithCode text={detail} />
      {found === 'unknown' || type === 'SES' || observed.length === 0 ? null : (
        <>
          <span className="muted">Found in DNS:</span>
          {observed.map((text) => (
            <Code key={text} block className="wrap" style={{ whiteSpace: 'pre-wrap' }}>
              {text}
            </Code>
          ))}
        </>
      )}
    </div>
  );
}
