/** The DNS records to publish: purpose, type, name and value to copy, and the result of the last check. */
import { Button, Code, CopyButton } from '@mantine/core';
import { IconDownload } from '@tabler/icons-react';
import { formatZone, formatZoneFile } from '../../../src/domains/zone-file';
import type { DomainDetails, DomainRecord } from '../../../src/operations/domain-details.ts';
import { Card } from '../parts/card';
import { CopyIcon } from '../parts/copyable';
import { saveFile } from '../parts/download';
import { TextWithCode } from '../parts/text-with-code';
import { KeyBadge, PURPOSE_LABELS, RecordBadge } from './domain-badge';

export function RecordTable({ domain: { domain, records } }: { readonly domain: DomainDetails }) {
  return (
    <Card
      title="DNS records"
      secondary={`publish these at the DNS provider of ${domain}`}
      aside={
        <>
          <Button
            variant="default"
            size="xs"
            leftSection={<IconDownload size={14} stroke={1.8} aria-hidden />}
            onClick={() =>
              saveFile(new Blob([formatZoneFile(domain, records)], { type: 'text/dns' }), `${domain}.zone`)
            }
          >
            Zone file
          </Button>
          <CopyTextButton value={formatZone(records)} label="Copy all" />
        </>
      }
      flush
    >
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
            <Row key={`${record.type} ${record.name} ${record.value}`} record={record} domain={domain} />
          ))}
        </tbody>
      </table>
    </Card>
  );
}

function Row({ record, domain }: { readonly record: DomainRecord; readonly domain: string }) {
  const { purpose, type, name, value, found, key, about } = record;
  const isPublished = type !== 'SES';
  return (
    <tr>
      <td className="fill">
        <div className="two-lines">
          <b>{PURPOSE_LABELS[purpose]}</b>
          <span>
            <TextWithCode text={describePurpose(about)} />
          </span>
        </div>
      </td>
      <td>
        <span className="category">{type}</span>
      </td>
      <td className="fill">{isPublished ? <RecordName name={name} domain={domain} /> : null}</td>
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

/** Returns the purpose as a sentence. Removes a leading name such as `SPF:`, because the table shows it separately. */
function describePurpose(about: string): string {
  const text = about.replace(/^[\w ]{2,20}: /, '');
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}

/** Shows the name of a record. The domain is gray, because most DNS hosts append the domain to the entered name. */
function RecordName({ name, domain }: { readonly name: string; readonly domain: string }) {
  const suffix = `.${domain}`;
  const endsWithDomain = name.endsWith(suffix);
  return (
    <span className="copyable-code">
      <code className="record-name" title={name}>
        {endsWithDomain ? name.slice(0, -suffix.length) : name}
        {endsWithDomain ? (
          <>
            <wbr />
            <span>{suffix}</span>
          </>
        ) : null}
      </code>
      <CopyIcon value={name} label={`the name ${name}`} />
    </span>
  );
}

/** A labeled button that copies a value of several lines. */
export function CopyTextButton({ value, label }: { readonly value: string; readonly label: string }) {
  return (
    <CopyButton value={value}>
      {({ copied, copy }) => (
        <Button variant="default" size="xs" onClick={copy}>
          {copied ? 'Copied' : label}
        </Button>
      )}
    </CopyButton>
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

/** Shows the values in DNS that differ from the value to publish, and the remedy of a fault. */
function CheckResult({ record: { found, detail, observed, value, type } }: { readonly record: DomainRecord }) {
  const otherValues = type === 'SES' || found === 'unknown' ? [] : observed.filter((text) => text !== value);
  const hasFault = found !== 'found' || type === 'SES';
  if ((detail === null || !hasFault) && otherValues.length === 0) return null;
  return (
    <div className="record-result">
      {detail === null || !hasFault ? null : <TextWithCode text={detail} />}
      {otherValues.length === 0 ? null : (
        <>
          <span className="muted">Found in DNS:</span>
          {otherValues.map((text) => (
            <Code key={text} block className="wrap" style={{ whiteSpace: 'pre-wrap' }}>
              {text}
            </Code>
          ))}
        </>
      )}
    </div>
  );
}
