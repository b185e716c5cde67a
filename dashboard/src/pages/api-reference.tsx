/** The API reference: the public interface with a console, and the operations of the operator API. */
import { Anchor, Button, Code, Tabs, Text } from '@mantine/core';
import { Link } from 'wouter';
import { useUrlState } from '../api/url-state';
import { PageHead } from '../parts/page-head';
import { ErrorAlert, Loading } from '../parts/page-states';
import { Console } from '../reference/console';
import { listOperations, listWebhooks } from '../reference/document';
import { OperationList } from '../reference/operation-list';
import { PublicInterface } from '../reference/public-interface';
import { useOperatorDocument, usePublicDocument } from '../reference/queries';
import type { PageProps } from './index';

const TABS = [
  { value: 'send', label: 'Send a message' },
  { value: 'operator', label: 'Operator API' },
  { value: 'webhooks', label: 'Webhooks' },
] as const;

export function ApiReferencePage({ session }: PageProps) {
  const [urlState, setUrlState] = useUrlState();
  const tab = TABS.find(({ value }) => value === urlState.get('tab'))?.value ?? 'send';
  return (
    <>
      <PageHead title="API reference">
        <Button
          component="a"
          variant="default"
          href={tab === 'send' ? '/api/v1/public-openapi.json' : '/api/v1/openapi.json'}
          download={tab === 'send' ? 'openapi.json' : 'operator-openapi.json'}
        >
          OpenAPI document
        </Button>
      </PageHead>
      <Tabs
        value={tab}
        onChange={(value) => setUrlState({ tab: value === 'send' ? null : value, q: null })}
        keepMounted={false}
      >
        <Tabs.List mb="md">
          {TABS.map(({ value, label }) => (
            <Tabs.Tab key={value} value={value}>
              {label}
            </Tabs.Tab>
          ))}
        </Tabs.List>
        <Tabs.Panel value="send">
          <PublicTab session={session} />
        </Tabs.Panel>
        <Tabs.Panel value="operator">
          <OperatorTab />
        </Tabs.Panel>
        <Tabs.Panel value="webhooks">
          <WebhooksTab />
        </Tabs.Panel>
      </Tabs>
    </>
  );
}

function PublicTab({ session }: Pick<PageProps, 'session'>) {
  const document = usePublicDocument();
  if (document.isPending) return <Loading />;
  if (document.isError) return <ErrorAlert error={document.error} retry={document.refetch} />;
  return (
    <div className="columns wide-side">
      <PublicInterface document={document.data} publicUrl={session.publicUrl} />
      <div className="sticky-side">
        <Console session={session} document={document.data} />
      </div>
    </div>
  );
}

function OperatorTab() {
  const document = useOperatorDocument();
  if (document.isPending) return <Loading />;
  if (document.isError) return <ErrorAlert error={document.error} retry={document.refetch} />;
  return (
    <>
      <Text size="sm" c="dimmed" mb="md">
        {document.data.info.description} Programs authenticate with an{' '}
        <Anchor component={Link} href="/tokens" inherit>
          API token
        </Anchor>
        : <Code>Authorization: Bearer TOKEN</Code>.
      </Text>
      <OperationList document={document.data} operations={listOperations(document.data)} noun="operation" />
    </>
  );
}

function WebhooksTab() {
  const document = useOperatorDocument();
  if (document.isPending) return <Loading />;
  if (document.isError) return <ErrorAlert error={document.error} retry={document.refetch} />;
  return (
    <>
      <Text size="sm" c="dimmed" mb="md">
        The requests that the service sends to the{' '}
        <Anchor component={Link} href="/webhooks" inherit>
          endpoints
        </Anchor>{' '}
        of your applications. A response with a status 2xx accepts the event.
      </Text>
      <OperationList document={document.data} operations={listWebhooks(document.data)} noun="webhook" />
    </>
  );
}
