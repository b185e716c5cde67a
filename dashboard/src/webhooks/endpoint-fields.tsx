/** The form fields for the members that can be changed after an endpoint is created: URL, name and events. */
import { TextInput } from '@mantine/core';
import type { ReactNode } from 'react';
import type { WebhookEventType } from '../../../src/model/webhook.ts';
import { findFieldError } from '../parts/field-error';
import { EventSelect } from './event-select';

export interface EndpointValues {
  readonly url: string;
  readonly name: string;
  readonly events: readonly WebhookEventType[];
}

interface EndpointFieldsProps {
  readonly values: EndpointValues;
  /** The error of the request, which is shown at the field that causes it. */
  readonly error: unknown;
  readonly onChange: (values: EndpointValues) => void;
  /** Further fields, between the name and the events. */
  readonly children?: ReactNode;
}

export function EndpointFields({ values, error, onChange, children }: EndpointFieldsProps) {
  return (
    <>
      <TextInput
        label="URL"
        description="It receives a signed POST request for each event."
        placeholder="https://app.example.com/webhooks"
        value={values.url}
        onChange={(event) => onChange({ ...values, url: event.currentTarget.value })}
        error={findFieldError(error, 'url')}
        autoComplete="off"
        autoCapitalize="off"
        spellCheck={false}
        required
        data-autofocus
      />
      <TextInput
        label="Name"
        description="A label, such as the name of the application"
        value={values.name}
        onChange={(event) => onChange({ ...values, name: event.currentTarget.value })}
        error={findFieldError(error, 'name')}
        maxLength={64}
        autoComplete="off"
      />
      {children}
      <EventSelect
        selectedTypes={values.events}
        onChange={(events) => onChange({ ...values, events })}
        error={findFieldError(error, 'events')}
      />
    </>
  );
}

/** Returns true if the URL is not empty and at least one event type is selected. */
export function isComplete({ url, events }: EndpointValues): boolean {
  return url.trim() !== '' && events.length > 0;
}

/** Returns true if the error concerns the URL, the name, the events or the account. */
export function hasEndpointFieldError(error: unknown): boolean {
  return ['url', 'name', 'events', 'account'].some((field) => findFieldError(error, field) !== null);
}
