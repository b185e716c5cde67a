/** Shows an error in place of a page that fails to render. The frame and the other pages are not affected. */
import { Component, type ReactNode } from 'react';
import { PageHead } from './page-head';
import { ErrorAlert } from './page-states';

interface ErrorBoundaryProps {
  /** A value such as the path. If the value changes, the children are rendered again. */
  readonly resetKey: string;
  readonly children: ReactNode;
  /** Renders the error in place of the default error page. */
  readonly renderError?: (error: unknown) => ReactNode;
}

interface ErrorBoundaryState {
  readonly error: unknown;
  readonly resetKey: string;
}

export class ErrorBoundary extends Component<ErrorBoundaryProps, ErrorBoundaryState> {
  override state: ErrorBoundaryState = { error: null, resetKey: this.props.resetKey };

  static getDerivedStateFromError(error: unknown): Partial<ErrorBoundaryState> {
    return { error };
  }

  static getDerivedStateFromProps(
    { resetKey }: ErrorBoundaryProps,
    state: ErrorBoundaryState,
  ): ErrorBoundaryState | null {
    return resetKey === state.resetKey ? null : { error: null, resetKey };
  }

  override render(): ReactNode {
    if (this.state.error === null) return this.props.children;
    if (this.props.renderError !== undefined) return this.props.renderError(this.state.error);
    return (
      <>
        <PageHead title="This page cannot be shown" />
        <ErrorAlert error={this.state.error} retry={() => window.location.reload()} />
      </>
    );
  }
}
